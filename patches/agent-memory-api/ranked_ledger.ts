// Ranked Ledger beside an agent-memory-api function. `ranked-ledger patch` owns this file: it writes, updates and removes it.
//
// The marked pieces in index.ts call this module and nothing else does. A recall that does not ask for
// `recall_policy: "ranked_ledger"` runs as it did before; one that does is ranked by recall_decisions in the database, and
// the function writes its trace, its items and its answer around that list as it always has. What belongs to one request
// travels in an AsyncLocalStorage, so that helper functions and closures handed to EdgeRuntime.waitUntil see it too.
//
// Environment, beside what the function reads anyway (SUPABASE_URL, SUPABASE_SERVICE_ROLE_KEY, MCP_ACCESS_KEY):
//   RANKED_LEDGER_TIMEOUT_MS            milliseconds that one call to the database may take, 10000 unless set
//   RANKED_LEDGER_EMBEDDING_TIMEOUT_MS  milliseconds that a ranked recall waits for the embedding, 3000 unless set
import { AsyncLocalStorage } from "node:async_hooks";

/** The version of what this module and the marked pieces expect of each other. */
export const VERSION = "1";

/** How a recall is answered: by the function's own vector search, or ranked by the ledger. */
export type RecallPolicy = "vector" | "ranked_ledger";

/** What is used of Hono's Context, by shape, so that the function's own version of Hono decides the types. */
export interface ContextLike {
  req: { raw: Request; json(): Promise<unknown>; text(): Promise<string> };
  res: Response;
}

/** Goes on to the function's next handler. */
export type Next = () => Promise<void>;

/** A middleware of a route; an answer of its own goes to `c.res`, so that the types of the route stay as they are. */
export type Middleware = (c: ContextLike, next: Next) => Promise<void>;

/** What is used of the `z` of zod, version 3 or 4. */
export interface ZodNamespace {
  object: unknown;
  array: unknown;
  string: unknown;
  number: unknown;
  boolean: unknown;
  enum: unknown;
}

/**
 * The ledger could not, or would not, answer. It becomes the answer of the route.
 *
 * - `status`: the HTTP status, 400 to 503.
 * - `code`: not_installed, not_configured, unreachable, timeout, key_refused, unexpected, bypassed, or the database's code.
 * - `hint`: what to do next, or null.
 */
export class LedgerRefusal extends Error {
  override readonly name = "LedgerRefusal";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
  }
}

type Fields = Record<string, unknown>;

/** A decision as recall_decisions answers it; docs/sql-api.md names the rest. */
interface Hit extends Fields {
  memory_id: string;
}

interface RecallState {
  policy: RecallPolicy;
  /** The parsed request, null until the function has handed it over. */
  payload: Fields | null;
  vector: number[] | null;
  /** used, or why the ranking went without: none, failed, timeout, unusable, dimension. */
  embedding: string;
  /** What recall_decisions answered, its hits apart. */
  answer: Fields | null;
  hits: Hit[];
  listing: Promise<never[]> | null;
  refusal: LedgerRefusal | null;
  /** The counting of the recall, which nobody has to wait for but the end of the request. */
  counting: Promise<unknown> | null;
}

const recalls = new AsyncLocalStorage<RecallState>();
const writes = new AsyncLocalStorage<Kept[]>();

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const INSTALL =
  "Push the ledger's migrations (`supabase db push`); if that is done, reload PostgREST: `notify pgrst, 'reload schema'`.";

// --- /recall -----------------------------------------------------------------------------------------------------------

/**
 * The fields that a recall request gains. Typed as nothing, so that the type of the function's schema stays as it is.
 *
 * - `recall_policy`: "vector" (default) or "ranked_ledger".
 * - `current_step`: the step that the agent is at, 0 to 1,000,000,000; recency counts back from it. Default: the newest step.
 * - `min_relevance`: 0 to 1; decisions of less relevance are left out. Default: none is.
 * - `ranking`: how a ranked recall weighs, each default the database's:
 *   - `weights`: `relevance` 0.45, `importance` 0.25, `recency` 0.15, `dependency` 0.15; finite, at least 0.
 *   - `half_life_steps`: steps after which recency is 1/e, above 0, 30.
 *   - `dependency_saturation`: live dependants that count as 1, above 0, 3.
 *   - `similarity_floor`, `similarity_ceiling`: the cosines that count as relevance 0 and 1, -1 to 1; 0 and 1.
 *   - `fusion`: of cosine and text, "none" (the cosine alone), "max" or "blend"; none.
 *   - `fusion_weight`: the cosine's share in a blend, 0 to 1; 0.5.
 * - `with_hits`: true for `ledger.hit` besides: the whole hit as recall_decisions answers it, its line for a prompt included.
 *   Per memory, so that what the function leaves out of its answer stays out.
 */
export function recallFields(z: ZodNamespace): Record<never, never> {
  const zod = z as unknown as Zod;
  const between = (least: number, most: number) => zod.number().min(least).max(most).nullish();
  const weight = between(0, 1e300);
  const positive = zod.number().gt(0).max(1e300).nullish();
  return {
    recall_policy: zod.enum(["vector", "ranked_ledger"]).default("vector"),
    current_step: zod.number().int().min(0).max(1_000_000_000).nullish(),
    min_relevance: between(0, 1),
    ranking: zod.object({
      weights: zod.object({ relevance: weight, importance: weight, recency: weight, dependency: weight })
        .strict().nullish(),
      half_life_steps: positive,
      dependency_saturation: positive,
      similarity_floor: between(-1, 1),
      similarity_ceiling: between(-1, 1),
      fusion: zod.enum(["none", "max", "blend"]).nullish(),
      fusion_weight: between(0, 1),
    }).strict().nullish(),
    with_hits: zod.boolean().nullish(),
  };
}

/**
 * The middleware of POST /recall. The vector policy passes through. A ranked answer gains `policy`, and each of its memories
 * `ledger`; a refusal of the ledger becomes the answer, whatever the function made of it; and an answer that came about
 * without the ranked list is refused, since it would pass for a ranked one.
 */
export async function recall(c: ContextLike, next: Next): Promise<void> {
  const state: RecallState = {
    policy: "vector",
    payload: null,
    vector: null,
    embedding: "none",
    answer: null,
    hits: [],
    listing: null,
    refusal: null,
    counting: null,
  };
  try {
    await recalls.run(state, () => next());
  } catch (error) {
    if (!state.refusal) throw error;
  }
  await state.counting;
  if (state.refusal) return refuse(c, state.refusal, "ranked_ledger");
  if (!c.res.ok) return;
  if (!state.payload && policyOf(await c.req.json().catch(() => null)) === "ranked_ledger") {
    state.policy = "ranked_ledger";
  }
  if (state.policy === "vector") return;
  if (!state.answer) {
    const message = "The function answered before it came to the ranked list.";
    return refuse(
      c,
      new LedgerRefusal(503, "bypassed", message, "Ask with the vector policy, or patch the function anew."),
      "ranked_ledger",
    );
  }
  await editJson(c, (body) => explained(body, state));
}

/** Hands the parsed request over, where the function takes it apart at once; answers it unchanged. */
export function payload<T>(request: T): T {
  const state = recalls.getStore();
  if (state && isFields(request)) {
    state.payload = request;
    state.policy = policyOf(request);
  }
  return request;
}

/**
 * The embedding of the query. The vector policy gets what `obtain` gives, failure included. A ranked recall goes on without
 * where there is none in time, or none that can be compared, and says so in `policy.embedding`.
 */
export async function embedding<T>(request: unknown, obtain: () => Promise<T>): Promise<T> {
  payload(request);
  const state = recalls.getStore();
  if (state?.policy !== "ranked_ledger") return await obtain();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = milliseconds("RANKED_LEDGER_EMBEDDING_TIMEOUT_MS", 3000);
  const outcome = await Promise.race([
    // the rejection is taken here, so that one which comes too late is nobody's any more
    new Promise<T>((resolve) => resolve(obtain())).then((value) => ({ value }), () => "failed"),
    new Promise<string>((resolve) => timer = setTimeout(() => resolve("timeout"), limit)),
  ]);
  clearTimeout(timer);
  if (typeof outcome === "string") {
    state.embedding = outcome;
    return nothing();
  }
  state.vector = vectorIn(outcome.value);
  state.embedding = state.vector ? "used" : "unusable";
  return state.vector ? outcome.value : nothing();
}

/** Whether this request is ranked by the ledger; false outside of a recall. */
export function ranked(): boolean {
  return recalls.getStore()?.policy === "ranked_ledger";
}

/** Stands for a statement that only the vector policy runs. It does return: its type has TypeScript know what it knew before. */
export function goesOn(): never {
  return undefined as never;
}

/** Stands for a value that only the vector policy has: an empty list, and an answer of PostgREST with no rows and no error. */
export function nothing(): never {
  return Object.assign([], { data: [], error: null, count: 0, status: 200, statusText: "OK" }) as never;
}

/**
 * The ranked decisions as rows of agent_memories, best first, each with `similarity` (its cosine, 0 where it has none) and
 * `ranking_score`, both within what the columns of agent_memory_recall_items take. The content of a decision that the
 * token budget shortened is its summary. Asked once a request, however often it is called.
 *
 * - `select`: the columns, as PostgREST takes them.
 */
export function list(select = "*"): Promise<never[]> {
  const state = recalls.getStore();
  if (state?.policy !== "ranked_ledger") {
    throw new Error("rankedLedger.list() is called outside of a ranked recall");
  }
  return state.listing ??= rankedRows(state, select).catch((error) => {
    state.refusal = error instanceof LedgerRefusal ? error : unexpected();
    throw state.refusal;
  });
}

/** The keys that tell policies apart in response_policy; with the function's own object, that object with these keys. */
export function tracePolicy(): Fields;
export function tracePolicy<T>(theirs: T): T;
export function tracePolicy(theirs: unknown = {}): unknown {
  const state = recalls.getStore();
  if (!state || !isFields(theirs)) return theirs;
  if (state.policy === "vector") {
    return {
      recall_policy: "vector",
      arguments: { ...fields(state.payload?.limits), ...fields(state.payload?.scope) },
      ...theirs,
    };
  }
  const { arguments: inForce = {}, exact = null, shortened = [], dropped = [] } = state.answer ?? {};
  return {
    ...theirs,
    recall_policy: "ranked_ledger",
    arguments: inForce,
    exact,
    shortened,
    dropped,
    embedding: state.embedding,
  };
}

const SNAPSHOT = [
  ...["relevance", "relevance_source", "text_relevance", "importance", "recency", "dependency_boost"],
  ...["step_index", "step_distance", "live_dependents", "pinned", "lifecycle_status", "shortened"],
];

/** The snapshot of an item of the trace; a ranked one gains what it was weighed by, under the names of recall_decisions. */
export function itemSnapshot<T>(memoryId: unknown, snapshot: T): T {
  const state = recalls.getStore();
  const hit = state?.hits.find((hit) => hit.memory_id === memoryId);
  if (!hit || !isFields(snapshot)) return snapshot;
  return { ...snapshot, recall_policy: "ranked_ledger", ...picked(hit, SNAPSHOT) };
}

function policyOf(request: unknown): RecallPolicy {
  return isFields(request) && request.recall_policy === "ranked_ledger" ? "ranked_ledger" : "vector";
}

/** The arguments of recall_decisions. What the request leaves open is not sent, and takes the database's default. */
function recallArguments({ payload, vector }: RecallState): Fields {
  const request = payload ?? {};
  const [scope, limits, ranking] = [fields(request.scope), fields(request.limits), fields(request.ranking)];
  const weights = fields(ranking.weights);
  return set({
    p_trace: false, // the function writes it
    p_workspace_id: request.workspace_id,
    p_query: request.query,
    p_query_embedding: vector && JSON.stringify(vector),
    p_project_id: scope.project_only === false ? null : request.project_id,
    p_only_confirmed: !scope.include_unconfirmed,
    p_include_personal: scope.visibility === "personal",
    p_include_stale: scope.include_stale,
    p_match_count: limits.max_items,
    p_max_tokens: limits.max_tokens,
    p_current_step: request.current_step,
    p_min_relevance: request.min_relevance,
    p_w_similarity: weights.relevance,
    p_w_importance: weights.importance,
    p_w_recency: weights.recency,
    p_w_dependency: weights.dependency,
    p_half_life_steps: ranking.half_life_steps,
    p_dependency_saturation: ranking.dependency_saturation,
    p_similarity_floor: ranking.similarity_floor,
    p_similarity_ceiling: ranking.similarity_ceiling,
    p_fusion: ranking.fusion,
    p_fusion_weight: ranking.fusion_weight,
  });
}

async function rankedRows(state: RecallState, select: string): Promise<never[]> {
  const answer = await answeredRecall(state);
  const hits = Array.isArray(answer.hits) ? answer.hits.filter(isHit) : [];
  const rows = await memoryRows(hits.map((hit) => hit.memory_id), select);
  // one that was forgotten since it was ranked has no row
  state.hits = hits.filter((hit) => rows.has(hit.memory_id));
  state.answer = answer;
  if (state.hits.length) {
    const ids = state.hits.map((hit) => hit.memory_id);
    state.counting = ask("rpc/touch_decision_recall", { p_memory_ids: ids }).catch(
      tell("a recall was not counted"),
    );
  }
  return state.hits.map((hit) => ({
    ...rows.get(hit.memory_id),
    ...(hit.shortened ? { content: hit.summary } : {}),
    similarity: within(1, hit.similarity),
    ranking_score: within(999.9999, hit.ranking_score),
  })) as never[];
}

async function answeredRecall(state: RecallState): Promise<Fields> {
  try {
    return fields(await ask("rpc/recall_decisions", recallArguments(state)));
  } catch (error) {
    if (!(error instanceof LedgerRefusal) || error.code !== "RL463" || !state.vector) throw error;
    state.vector = null;
    state.embedding = "dimension";
    return fields(await ask("rpc/recall_decisions", recallArguments(state)));
  }
}

/** Rows of agent_memories by id, a hundred a request: a URL has an end. */
async function memoryRows(ids: string[], select: string): Promise<Map<string, Fields>> {
  const columns = encodeURIComponent(
    `${select.replace(/\s+(?=(?:[^"]*"[^"]*")*[^"]*$)/g, "")},ranked_ledger_id:id`,
  );
  const parts = Array.from(
    { length: Math.ceil(ids.length / 100) },
    (_, part) => ids.slice(part * 100, part * 100 + 100),
  );
  const answers = await Promise.all(
    parts.map((part) => ask(`agent_memories?select=${columns}&id=in.(${part.join(",")})`)),
  );
  const found = answers.flat().filter(isFields).map(({ ranked_ledger_id, ...row }) =>
    [String(ranked_ledger_id), row] as const
  );
  return new Map(found);
}

const HIT = { score: "ranking_score", dependency: "dependency_boost" };
const SHOWN = [
  ...[
    "step_index",
    "importance",
    "pinned",
    "rationale",
    "relevance",
    "relevance_source",
    "text_relevance",
    "recency",
  ],
  ...["step_distance", "live_dependents", "successor", "rests_on_retired", "shortened", "tokens"],
];

/** The answer of the function with `policy`, and with `ledger` at each of its memories. */
function explained(body: Fields, state: RecallState): Fields {
  const answer = state.answer ?? {};
  const policy = {
    recall_policy: "ranked_ledger",
    memory_types: ["decision"],
    relevance: state.vector
      ? (fields(answer.arguments).p_fusion === "none" ? "cosine" : fields(answer.arguments).p_fusion)
      : "text",
    embedding: state.embedding,
    exact: answer.exact ?? null,
    arguments: answer.arguments ?? {},
    shortened: answer.shortened ?? [],
    dropped: answer.dropped ?? [],
    not_applied: fields(state.payload?.limits).recency_days == null ? [] : ["limits.recency_days"],
    hint: answer.hint ?? null,
  };
  return {
    ...body,
    ...(Array.isArray(body.memories) && { memories: withLedger(body.memories, state) }),
    policy: { ...fields(body.policy), ...policy },
  };
}

function withLedger(memories: unknown[], { hits, payload }: RecallState): unknown[] {
  const byId = new Map(hits.map((hit) => [hit.memory_id, hit]));
  // the lines of the hits hold no alternatives: those are shown as far as the budget goes
  let room = Number(fields(payload?.limits).max_tokens ?? Infinity) - 37 -
    hits.reduce((sum, hit) => sum + Number(hit.tokens ?? 0), 0);
  return memories.map((memory, position) => {
    if (!isFields(memory)) return memory;
    const hit = byId.get(String(memory.memory_id)) ?? byId.get(String(memory.id)) ??
      (memories.length === hits.length ? hits[position] : undefined);
    if (!hit) return memory;
    const cost = Math.ceil(JSON.stringify(hit.alternatives ?? []).length / 4);
    const fits = !hit.shortened && cost <= room;
    if (fits) room -= cost;
    const ledger = {
      ...picked(hit, SHOWN),
      score: hit[HIT.score],
      dependency: hit[HIT.dependency],
      depends_on: hit.depends_on ?? [],
    };
    return {
      ...memory,
      ledger: {
        ...ledger,
        ...(hit.shortened ? { rationale: null } : {}),
        ...(fits ? { alternatives: hit.alternatives ?? [] } : {}),
        ...(payload?.with_hits === true ? { hit } : {}),
      },
    };
  });
}

/** The first vector in what an embedding service or its wrapper gives; null where there is none that pgvector can compare. */
function vectorIn(value: unknown, depth = 0): number[] | null {
  if (depth > 5 || value === null || value === undefined) return null;
  if (typeof value === "string") {
    return value.trimStart().startsWith("[") ? vectorIn(parsed(value), depth + 1) : null;
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return vectorIn(Array.from(value as Float32Array), depth + 1);
  }
  if (Array.isArray(value)) {
    if (typeof value[0] !== "number") return vectorIn(value[0], depth + 1);
    const isVector = value.length <= 16_000 && value.some((x) => x !== 0) &&
      value.every((x) => typeof x === "number" && Number.isFinite(Math.fround(x)));
    return isVector ? value : null;
  }
  if (!isFields(value)) return null;
  for (const key of ["embedding", "embeddings", "vector", "data"]) {
    const found = vectorIn(value[key], depth + 1);
    if (found) return found;
  }
  return null;
}

// --- /recall/:request_id/usage -----------------------------------------------------------------------------------------

/** The middleware of usage feedback: what it marked as used is counted with the decisions, once however often it is sent. */
export async function usage(c: ContextLike, next: Next): Promise<void> {
  await next();
  const requestId = idInPath(c);
  if (c.res.ok && requestId) {
    await ask("rpc/count_recall_usage", { p_request_id: requestId }).catch(tell("usage was not counted"));
  }
}

// --- /memories/:id/review ----------------------------------------------------------------------------------------------

/**
 * The middleware of a review. For a decision it answers the actions supersede and merge itself, which the function cannot do:
 * `by` is the id of the decision that takes its place, `notes` the reason. Everything else is the function's.
 */
export async function review(c: ContextLike, next: Next): Promise<void> {
  let answer: Fields | null;
  try {
    answer = await supersession(c);
  } catch (error) {
    return refuse(c, error instanceof LedgerRefusal ? error : unexpected());
  }
  if (answer) return respond(c, JSON.stringify(answer), 200);
  await next();
}

async function supersession(c: ContextLike): Promise<Fields | null> {
  const id = idInPath(c);
  if (!id || !await keyIsRight(c)) return null;
  const body = fields(parsed(await bodyText(c)));
  const { action, by, notes, actor_label: actor } = body;
  if (action !== "supersede" && action !== "merge") return null;
  if ([notes, actor].some((text) => text != null && typeof text !== "string")) return null; // the function says what is wrong
  const [memory] = [await ask(`agent_memories?select=workspace_id,memory_type&id=eq.${id}`)].flat().filter(
    isFields,
  );
  if (
    memory?.memory_type !== "decision" || (body.workspace_id ?? memory.workspace_id) !== memory.workspace_id
  ) return null;
  if (typeof by !== "string" || !UUID.test(by)) {
    const message = `To ${action} a decision, send "by": the id of the decision that takes its place.`;
    throw new LedgerRefusal(
      400,
      "by_missing",
      message,
      `{"action": "${action}", "by": "<memory id>", "notes": "<reason>"}`,
    );
  }
  const sent = {
    p_workspace_id: memory.workspace_id,
    p_old: id,
    p_new: by,
    p_action: action,
    p_reason: notes,
    p_actor: actor,
  };
  const { old, new: successor, changed } = fields(await ask("rpc/supersede_decision", set(sent)));
  return { action, changed, memory: old, by: successor };
}

// --- /writeback --------------------------------------------------------------------------------------------------------

/** A decision that was sent as an object, on its way to its row. */
interface Kept {
  /** Its place in `decisions`. */
  index: number;
  decision: Fields;
  /** The row that it went into, once the function has made it. */
  memoryId: string | null;
  workspaceId: unknown;
}

/**
 * The middleware of a write-back. A decision may be an object beside the plain strings: `content`, and any of `rationale`,
 * `importance` (0 to 1), `step_index` (0 to 1,000,000,000), `alternatives` (at most 20 texts), `depends_on` (at most 100
 * memory ids) and `confidence` (0 to 1). The function is shown its content; the rest goes to the ledger with the row that
 * `memory` is given, and the answer gains `ledger`: what was written there, and what was not.
 */
export function writeback(z: ZodNamespace): Middleware {
  const schema = decisionSchema(z as unknown as Zod);
  return async (c, next) => {
    const body = await keyIsRight(c) ? parsed(await bodyText(c)) : null;
    const holder = [body, fields(body).payload].filter(isFields).find((one) => Array.isArray(one.decisions));
    const sent = (holder?.decisions ?? []) as unknown[];
    if (!sent.some(isFields)) return await next();
    const kept = sent.flatMap((decision, index) =>
      isFields(decision) ? [{ index, decision, memoryId: null, workspaceId: null }] : []
    );
    const issues = kept.flatMap(({ index, decision }) => problems(schema, index, decision));
    if (issues.length) {
      return respond(
        c,
        JSON.stringify({ error: "A decision is not valid; nothing was written.", issues }),
        400,
      );
    }
    const place = secretPlace(kept);
    if (place) {
      return respond(
        c,
        JSON.stringify({ error: `${place} holds what looks like a secret; nothing was written.` }),
        422,
      );
    }
    Object.assign(holder as Fields, {
      decisions: sent.map((decision) => isFields(decision) ? decision.content : decision),
    });
    replaceBody(c, JSON.stringify(body));
    await writes.run(kept, () => next());
    if (!c.res.ok) return;
    const ledger = await writtenReport(kept);
    await editJson(c, (answer) => ({ ...answer, ledger }));
  };
}

/**
 * Called around the row, or the rows, that a write-back inserts: those of decisions that were sent as objects gain what the
 * ledger reads from `metadata`, their own confidence, and an id, so that they can be linked. For inserts only: an upsert
 * would write the id over the one that is there.
 */
export function memory<T>(rows: T): T {
  const kept = writes.getStore();
  if (!kept) return rows;
  const given: unknown[] = Array.isArray(rows) ? rows : [rows];
  const taken = new Set<Kept>();
  const filled = given.map((row) => {
    if (!isFields(row) || row.memory_type !== "decision") return row;
    const same = kept.filter((one) => !taken.has(one) && folded(one.decision.content) === folded(row.content));
    const one = same.find((one) => !one.memoryId) ?? same[0];
    if (!one) return row;
    taken.add(one);
    one.memoryId = typeof row.id === "string" ? row.id : crypto.randomUUID();
    one.workspaceId = row.workspace_id;
    const ours = set(picked(one.decision, ["rationale", "importance", "step_index", "alternatives"]));
    const theirs = fields(row.metadata);
    // enrolment reads metadata.agent_memory before metadata
    const metadata = isFields(theirs.agent_memory)
      ? { ...theirs, agent_memory: { ...theirs.agent_memory, ...ours } }
      : { ...theirs, ...ours };
    return { ...row, ...set({ confidence: one.decision.confidence }), id: one.memoryId, metadata };
  });
  if (!taken.size) return rows;
  if (!Array.isArray(rows)) return filled[0] as T;
  // PostgREST writes null where one row of several lacks a key that another has
  const has = (key: string) => filled.some((row) => isFields(row) && row[key] !== undefined);
  const absent = (row: Fields) => ({
    id: crypto.randomUUID(),
    ...(has("metadata") && { metadata: {} }),
    ...(has("confidence") && { confidence: 0.5 }),
    ...set(row),
  });
  return filled.map((row) => isFields(row) ? { ...row, ...absent(row) } : row) as T;
}

function decisionSchema(zod: Zod): Schema {
  const text = () => zod.string().regex(/\S/).max(262_144);
  return zod.object({
    content: text(),
    rationale: zod.string().max(262_144).nullish(),
    importance: zod.number().min(0).max(1).nullish(),
    step_index: zod.number().int().min(0).max(1_000_000_000).nullish(),
    alternatives: zod.array(text()).max(20).nullish(),
    depends_on: zod.array(zod.string().regex(UUID)).max(100).nullish(),
    confidence: zod.number().min(0).max(1).nullish(),
  }).strict();
}

function problems(schema: Schema, index: number, decision: Fields): Fields[] {
  const { error } = schema.safeParse(decision);
  return (error?.issues ?? []).map((issue) => ({
    path: ["decisions", index, ...issue.path],
    message: issue.message,
  }));
}

const SECRETS = [
  /\bsk-[\w-]{20,}/,
  /\bsb_secret_\w{16,}/,
  /\b(gh[pousr]_|github_pat_)\w{30,}/,
  /\bxox[abeoprs]-[\w-]{10,}/,
  /\b(AKIA|ASIA)[0-9A-Z]{16}\b/,
  /\bAIza[\w-]{35}/,
  /\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\./,
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{1,200}:[^\s:/@]{3,200}@/i,
  /\b(password|passwd|secret|token|api[_-]?key)["']?\s{0,5}[:=]\s{0,5}["']?(?=\S{0,200}\d)(?=\S{0,200}[a-z])\S{12,}/i,
];

/** Where a rationale or an alternative holds a secret; the content is the function's to check, which it does. */
function secretPlace(kept: Kept[]): string | null {
  for (const { index, decision } of kept) {
    for (const key of ["rationale", "alternatives"]) {
      const texts = [decision[key] ?? []].flat();
      if (SECRETS.some((secret) => texts.some((text) => secret.test(String(text))))) {
        return `decisions.${index}.${key}`;
      }
    }
  }
  return null;
}

/** What of the objects the ledger holds now. Links what they depend on first. */
async function writtenReport(kept: Kept[]): Promise<Fields> {
  const written = kept.filter((one) => one.memoryId && UUID.test(one.memoryId));
  const rows = new Map<unknown, Fields>();
  const depends = { linked: [] as Fields[], not_linked: [] as Fields[] };
  let reason =
    "the memory is stored, and the ledger does not hold it: see ledger_status, enroll_missing_decisions mends it";
  try {
    const ids = written.map((one) => one.memoryId).join(",");
    const select = "select=memory_id,step_index,importance";
    const found = ids ? await ask(`agent_decision_ledger?${select}&memory_id=in.(${ids})`) : [];
    for (const row of [found].flat().filter(isFields)) rows.set(row.memory_id, row);
    for (const one of written) if (rows.has(one.memoryId)) await link(one, depends);
  } catch (error) {
    reason = error instanceof LedgerRefusal ? error.message : unexpected().message;
  }
  const absent = "the function stored no row of this text, as for a repeated idempotency key";
  return {
    decisions: written.flatMap(({ index, memoryId }) => rows.has(memoryId) ? [{ index, ...rows.get(memoryId) }] : []),
    ...depends,
    not_written: kept.filter((one) => !rows.has(one.memoryId))
      .map(({ index, memoryId }) => ({ index, memory_id: memoryId, reason: memoryId ? reason : absent })),
  };
}

async function link(
  { decision, memoryId, workspaceId }: Kept,
  report: { linked: Fields[]; not_linked: Fields[] },
): Promise<void> {
  let down: LedgerRefusal | null = null; // one call that gets no answer is enough
  for (const ground of new Set([decision.depends_on ?? []].flat())) {
    const edge = { memory_id: memoryId, depends_on: ground };
    try {
      if (down) throw down;
      await ask("rpc/link_decisions", { p_workspace_id: workspaceId, p_from: memoryId, p_to: ground });
      report.linked.push(edge);
    } catch (error) {
      const refusal = error instanceof LedgerRefusal ? error : unexpected();
      if (refusal.status >= 500) down = refusal;
      report.not_linked.push({ ...edge, code: refusal.code, reason: refusal.message });
    }
  }
}

// --- requests and answers ----------------------------------------------------------------------------------------------

/** The last id in the path: no route of the function has another behind its own. */
function idInPath(c: ContextLike): string | undefined {
  return new URL(c.req.raw.url).pathname.split("/").findLast((part) => UUID.test(part));
}

/** Whether the request carries MCP_ACCESS_KEY. Compared as digests, so that the time tells nothing. */
async function keyIsRight(c: ContextLike): Promise<boolean> {
  const key = env("MCP_ACCESS_KEY");
  const given = c.req.raw.headers.get("x-brain-key") ?? new URL(c.req.raw.url).searchParams.get("key");
  if (!key || !given) return false;
  const digest = async (text: string) =>
    new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const [ours, theirs] = await Promise.all([digest(key), digest(given)]);
  return ours.reduce((difference, byte, index) => difference | (byte ^ theirs[index]), 0) === 0;
}

/** The body of the request, which the function can still read; empty where it cannot be read. */
async function bodyText(c: ContextLike): Promise<string> {
  try {
    return c.req.raw.bodyUsed ? await c.req.text() : await c.req.raw.clone().text();
  } catch {
    return "";
  }
}

function replaceBody(c: ContextLike, body: string): void {
  const { url, method, signal } = c.req.raw;
  const headers = new Headers(c.req.raw.headers);
  for (const name of ["content-length", "content-encoding", "transfer-encoding"]) headers.delete(name);
  c.req.raw = new Request(url, { method, headers, body, signal });
  (c.req as { bodyCache?: Fields }).bodyCache = {}; // Hono's, of the body that was
}

/** An answer in the place of that of the route, whose other headers stay. */
function respond(
  c: ContextLike,
  body: string,
  status: number,
  type = "application/json; charset=UTF-8",
): void {
  const headers = new Headers(c.res.headers);
  for (const name of ["content-length", "content-encoding", "etag"]) headers.delete(name);
  headers.set("content-type", type);
  (c as { res: Response | undefined }).res = undefined; // else Hono lays the old headers over the new ones
  c.res = new Response(body, { status, headers });
}

function refuse(c: ContextLike, { status, code, message, hint }: LedgerRefusal, policy?: RecallPolicy): void {
  if (status >= 500) console.error(`ranked_ledger: ${message} (${code})`);
  respond(
    c,
    JSON.stringify({ error: message, code, hint, ...(policy && { recall_policy: policy }) }),
    status,
  );
}

/** Edits the answer where it is a JSON object, and leaves any other one alone. */
async function editJson(c: ContextLike, edit: (body: Fields) => Fields): Promise<void> {
  const type = c.res.headers.get("content-type") ?? "";
  if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type) || c.res.headers.has("content-encoding")) return;
  const { status } = c.res;
  const text = await c.res.text();
  const body = parsed(text);
  respond(c, isFields(body) ? JSON.stringify(edit(body)) : text, status, type);
}

// --- the database ------------------------------------------------------------------------------------------------------

/** Asks PostgREST, once: a POST with a body, else a GET. Whatever is not an answer is a LedgerRefusal. */
async function ask(path: string, body?: Fields): Promise<unknown> {
  const [url, key] = [env("SUPABASE_URL"), env("SUPABASE_SERVICE_ROLE_KEY")];
  if (!url || !key) {
    throw new LedgerRefusal(503, "not_configured", "SUPABASE_URL or SUPABASE_SERVICE_ROLE_KEY is not set.");
  }
  const headers = new Headers({
    apikey: key,
    accept: "application/json",
    "content-type": "application/json",
  });
  if (!key.startsWith("sb_")) headers.set("authorization", `Bearer ${key}`); // a new key is no JWT
  const limit = milliseconds("RANKED_LEDGER_TIMEOUT_MS", 10_000);
  let [ok, status, text] = [false, 0, ""];
  try {
    const response = await fetch(`${url.replace(/\/+$/, "")}/rest/v1/${path}`, {
      ...(body && { method: "POST", body: JSON.stringify(body) }),
      headers,
      redirect: "error", // it would take the key along
      signal: AbortSignal.timeout(limit),
    });
    [ok, status, text] = [response.ok, response.status, await response.text()];
  } catch (error) {
    if (error instanceof Error && error.name === "TimeoutError") {
      throw new LedgerRefusal(
        503,
        "timeout",
        `The ledger gave no answer within ${limit} ms.`,
        "Try again later, or raise RANKED_LEDGER_TIMEOUT_MS.",
      );
    }
    throw new LedgerRefusal(
      503,
      "unreachable",
      "The ledger could not be reached.",
      "Check SUPABASE_URL; try again later.",
    );
  }
  const answer = parsed(text);
  if (!ok) throw refusalOf(status, fields(answer));
  if (answer === undefined) throw unexpected();
  return answer;
}

const NOT_INSTALLED = new Set(["PGRST106", "PGRST202", "PGRST203", "PGRST205", "42883", "42P01", "RL501"]);
const STATUS: Record<string, number> = {
  RL404: 404,
  RL410: 410,
  RL409: 409,
  RL461: 409,
  RL462: 400,
  RL463: 400,
  PGRST102: 400,
  "23514": 400,
  "54000": 400,
};

function refusalOf(status: number, { code, message, hint }: Fields): LedgerRefusal {
  const known = typeof code === "string" ? code : "";
  if (NOT_INSTALLED.has(known)) {
    return new LedgerRefusal(
      503,
      "not_installed",
      "The decision ledger is not installed in this project, or out of date.",
      INSTALL,
    );
  }
  const ours = STATUS[known] ?? (/^22\w{3}$/.test(known) ? 400 : 0);
  if (ours) return new LedgerRefusal(ours, known, String(message), typeof hint === "string" ? hint : null);
  if (status === 401 || status === 403) {
    return new LedgerRefusal(
      503,
      "key_refused",
      "The database refuses the key of the function.",
      "Set SUPABASE_SERVICE_ROLE_KEY to a secret key of this project.",
    );
  }
  return known
    ? new LedgerRefusal(503, known, `The database could not answer (${known}).`, "Try again later.")
    : unexpected(status);
}

function unexpected(status?: number): LedgerRefusal {
  return new LedgerRefusal(
    503,
    "unexpected",
    `What came back is no answer of the ledger${status ? ` (HTTP ${status})` : ""}.`,
    "Check SUPABASE_URL; try again later.",
  );
}

/** Logs a failure that costs nobody the answer. */
function tell(what: string): (error: unknown) => void {
  return (error) =>
    console.warn(`ranked_ledger: ${what}: ${error instanceof LedgerRefusal ? error.message : "unexpected"}`);
}

// --- values ------------------------------------------------------------------------------------------------------------

/** What is used of a zod schema, the same in zod 3 and 4. */
interface Schema {
  nullish(): Schema;
  default(value: unknown): Schema;
  strict(): Schema;
  int(): Schema;
  gt(least: number): Schema;
  min(least: number): Schema;
  max(most: number): Schema;
  regex(pattern: RegExp): Schema;
  safeParse(value: unknown): { error?: { issues: { path: PropertyKey[]; message: string }[] } };
}

interface Zod {
  object(shape: Record<string, Schema>): Schema;
  array(element: Schema): Schema;
  string(): Schema;
  number(): Schema;
  boolean(): Schema;
  enum(values: string[]): Schema;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isHit(value: unknown): value is Hit {
  return isFields(value) && typeof value.memory_id === "string" && UUID.test(value.memory_id);
}

function fields(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function picked(value: Fields, keys: string[]): Fields {
  return Object.fromEntries(keys.filter((key) => key in value).map((key) => [key, value[key]]));
}

/** Without what is null or undefined. */
function set(value: Fields): Fields {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null && one !== undefined));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function folded(text: unknown): string {
  return String(text).replace(/\s+/g, " ").trim();
}

function within(bound: number, value: unknown): number {
  return Math.min(bound, Math.max(-bound, Number(value) || 0));
}

function milliseconds(name: string, otherwise: number): number {
  const value = Number(env(name));
  return value > 0 ? Math.min(value, 600_000) : otherwise;
}

function env(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined; // not among the variables that the function may read
  }
}
