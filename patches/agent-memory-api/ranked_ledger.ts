// Ranked Ledger beside an agent-memory-api function. `ranked-ledger patch` owns this file: it writes, updates and removes it.
//
// The marked pieces in index.ts call this module and nothing else does. A recall that does not ask for
// `recall_policy: "ranked_ledger"` runs as it did before; one that does is ranked by recall_decisions in the database, and
// the function writes its trace, its items and its answer around that list as it always has. What belongs to one request
// travels in an AsyncLocalStorage, so that helper functions and closures handed to EdgeRuntime.waitUntil see it too.
//
// Environment, beside what the function reads anyway (SUPABASE_URL, SUPABASE_SERVICE_ROLE_KEY):
//   RANKED_LEDGER_EMBEDDING_MODEL       the name under which the workspace keeps a similarity range for the function's model
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

/** What keeps the ledger from answering, by code: what happened, and what to do. The database's own codes come beside them. */
const UNAVAILABLE = {
  not_installed: [
    "The decision ledger is not installed in this project, or out of date.",
    "Push its migrations (`supabase db push`); if that is done, reload PostgREST: `notify pgrst, 'reload schema'`.",
  ],
  not_configured: [
    "SUPABASE_URL or SUPABASE_SERVICE_ROLE_KEY is not set.",
    "Set the secrets of the function.",
  ],
  key_refused: [
    "The database refuses the function's key.",
    "Set SUPABASE_SERVICE_ROLE_KEY to a key of this project.",
  ],
  unreachable: ["The ledger could not be reached.", "Check SUPABASE_URL; try again later."],
  timeout: ["The ledger gave no answer in time.", "Try again later, or raise RANKED_LEDGER_TIMEOUT_MS."],
  failed: ["The database could not answer.", "Try again later."],
  unexpected: ["What came back is no answer of the ledger.", "Check SUPABASE_URL; try again later."],
  bypassed: [
    "The function answered before it came to the ranked list.",
    "Ask with the vector policy, or apply `ranked-ledger patch` anew.",
  ],
} as const;

/**
 * The ledger could not, or would not, answer. It becomes the answer of the route.
 *
 * - `status`: the HTTP status, 400 to 503.
 * - `code`: one of UNAVAILABLE, or the database's.
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

  static unavailable(code: keyof typeof UNAVAILABLE, detail?: string | number): LedgerRefusal {
    const [message, hint] = UNAVAILABLE[code];
    return new LedgerRefusal(503, code, detail ? `${message.slice(0, -1)} (${detail}).` : message, hint);
  }

  static of(error: unknown): LedgerRefusal {
    return error instanceof LedgerRefusal ? error : LedgerRefusal.unavailable("unexpected");
  }
}

type Fields = Record<string, unknown>;

/** A decision as recall_decisions answers it; docs/sql-api.md names the rest. */
interface Hit extends Fields {
  memory_id: string;
}

class RecallState {
  policy: RecallPolicy = "vector";
  /** The reading of the body: what is asked is known from it until the function hands the request over. */
  reading: Promise<void> | null = null;
  isHandedOver = false;
  /** The request, as the function parsed it where it has handed it over. */
  request: Fields | null = null;
  vector: number[] | null = null;
  /** Whether the vector was used, or why the ranking went without. */
  embedding: "used" | "none" | "failed" | "timeout" | "unusable" | "dimension" = "none";
  answer: Fields | null = null;
  hits: Hit[] = [];
  listing: Promise<never[]> | null = null;
  refusal: LedgerRefusal | null = null;
}

/** A decision of a write-back that was sent as an object, on its way to its row. */
interface Kept {
  /** Its place in `decisions`. */
  index: number;
  decision: Fields;
  /** Its content, folded, by which its row is known. */
  text: string;
  /** The row that it went into, once the function has made it. */
  memoryId?: string;
  workspaceId?: unknown;
}

interface Writing {
  kept: Kept[];
  /** How many decisions were sent, strings among them. */
  decisions: number;
  /** Whether the function has come to inserting decisions. */
  isAsked: boolean;
}

const recalls = new AsyncLocalStorage<RecallState>();
const writes = new AsyncLocalStorage<Writing>();
const reviews = new AsyncLocalStorage<{ isLetIn: boolean }>();

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

// --- /recall --------------------------------------------------------------------------------------------------------

/**
 * The fields that a recall request gains. Typed as nothing, so that the type of the function's schema stays as it is.
 *
 * - `recall_policy`: "vector" (default) or "ranked_ledger".
 * - `current_step`: the step that the agent is at, 0 to 1,000,000,000; recency counts back from it. Default: the newest.
 * - `min_relevance`: 0 to 1; decisions of less relevance are left out. Default: none is.
 * - `ranking`: how a ranked recall weighs; what is left out has the default of the preset, here those of "published":
 *   - `preset`: "published" (default), the formula of the proposal, or "tuned", for long work and long records.
 *   - `weights`: `relevance` 0.45, `importance` 0.25, `recency` 0.15, `dependency` 0.15, `summary` 0; each 0 to 1e300.
 *   - `half_life_steps`: steps after which recency is 1/e, above 0; 30.
 *   - `dependency_saturation`: live dependants that count as 1, above 0; 3.
 *   - `similarity_floor`, `similarity_ceiling`: the cosines that count as relevance 0 and 1, from -1 to 1; 0 and 1.
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
  const weights = {
    relevance: weight,
    importance: weight,
    recency: weight,
    dependency: weight,
    summary: weight,
  };
  return {
    recall_policy: zod.enum(["vector", "ranked_ledger"]).nullish(), // no default: a copy may spread what was parsed
    current_step: zod.number().int().min(0).max(1_000_000_000).nullish(),
    min_relevance: between(0, 1),
    ranking: zod.object({
      preset: zod.string().max(100).nullish(), // the ledger knows which there are, and says so
      weights: zod.object(weights).strict().nullish(),
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
 * The middleware of POST /recall. The vector policy passes through. A ranked answer gains `policy`, and each of its
 * memories `ledger`; a refusal of the ledger becomes the answer, whatever the function made of it; and an answer that
 * came about without the ranked list is refused, since it would pass for a ranked one.
 */
export async function recall(c: ContextLike, next: Next): Promise<void> {
  const state = new RecallState();
  // beside the function, which may answer before it has read anything
  state.reading = bodyText(c).then((text) => {
    const sent = parsed(text);
    if (!state.isHandedOver && (policyOf(sent) === "ranked_ledger" || !state.request)) begin(state, sent);
  });
  try {
    await recalls.run(state, () => next());
  } catch (error) {
    if (!state.refusal) throw error;
  }
  if (!state.refusal) {
    if (!c.res.ok) return;
    if (state.policy === "vector") return;
    if (state.answer) return await editJson(c, (body) => explained(body, state));
  }
  refuse(c, state.refusal ?? LedgerRefusal.unavailable("bypassed"), { recall_policy: "ranked_ledger" });
}

function begin(state: RecallState, request: unknown): void {
  state.request = fields(request);
  state.policy = policyOf(request);
}

/** Hands the parsed request over, where the function takes it apart at once; answers it unchanged. */
export function payload<T>(request: T): T {
  const state = recalls.getStore();
  if (!state || !isFields(request)) return request;
  // an object without the field asks for the vector policy, or is a part of the request that a function was given
  state.isHandedOver ||= "recall_policy" in request;
  if ("recall_policy" in request || state.policy === "vector") begin(state, request);
  return request;
}

/**
 * The embedding of the query. The vector policy gets what `obtain` gives, failure included. A ranked recall goes on
 * without where there is none in time, or none that can be compared, and `policy.embedding` in its answer says why.
 */
export async function embedding<T>(request: unknown, obtain: () => Promise<T>): Promise<T> {
  const state = recalls.getStore();
  await state?.reading;
  payload(request);
  if (state?.policy !== "ranked_ledger") return await obtain();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const obtained = new Promise<T>((resolve) => resolve(obtain())).then((value) => ({ value }), (error) => {
    if (isOwnRefusal(error)) throw error;
    console.warn(
      `ranked_ledger: recalled without an embedding: ${String(error?.message ?? error).slice(0, 300)}`,
    );
    return "failed" as const;
  });
  obtained.catch(() => {}); // one that comes too late is nobody's any more
  const outcome = await Promise.race([
    obtained,
    new Promise<"timeout">((resolve) => {
      timer = setTimeout(() => resolve("timeout"), milliseconds("RANKED_LEDGER_EMBEDDING_TIMEOUT_MS", 3000));
    }),
  ]);
  clearTimeout(timer);
  state.vector = typeof outcome === "string" ? null : vectorIn(outcome.value);
  state.embedding = typeof outcome === "string" ? outcome : state.vector ? "used" : "unusable";
  return typeof outcome === "string" || !state.vector ? nothing() : outcome.value;
}

/** Whether it is the function that says no (an HTTPException of Hono), and not the service that fails. */
function isOwnRefusal(error: unknown): boolean {
  const { status, getResponse } = fields(error);
  return typeof getResponse === "function" && Number(status) < 500;
}

/** Whether this request is ranked by the ledger; false outside of a recall. */
export function ranked(): boolean {
  return recalls.getStore()?.policy === "ranked_ledger";
}

/** Stands for a statement of the vector policy alone. It does return; by its type TypeScript knows what it knew before. */
export function goesOn(): never {
  return undefined as never;
}

/**
 * Stands for a value of the vector policy alone: an empty list, which answers `get`, `has` and `size` as an empty map does,
 * and `data`, `error` and `count` as PostgREST's client does where there are no rows.
 */
export function nothing(): never {
  const answer = { data: [], error: null, count: 0, status: 200, statusText: "OK" };
  const map = { size: 0, get: () => undefined, has: () => false };
  const empty: unknown[] = [];
  // not enumerable: it has no entries either
  for (const [name, value] of Object.entries({ ...answer, ...map })) {
    Object.defineProperty(empty, name, { value });
  }
  return empty as never;
}

/**
 * The ranked decisions as rows of agent_memories, best first, each with `similarity` (its cosine, 0 where it has none)
 * and `ranking_score`, both within what the columns of agent_memory_recall_items take. The content of a decision that
 * the token budget shortened is its summary. Asked once a request, however often it is called.
 *
 * - `select`: the columns, as PostgREST takes them.
 * - `own`: where the function goes by its own and not by the request: `workspace`, `scope`, and `limit`, at most so many rows.
 */
export function list(
  select = "*",
  own: { workspace?: unknown; scope?: unknown; limit?: unknown } = {},
): Promise<never[]> {
  const state = recalls.getStore();
  if (state?.policy !== "ranked_ledger") {
    throw new Error("rankedLedger.list() is called outside of a ranked recall");
  }
  if ("workspace" in own) state.request = { ...state.request, workspace_id: own.workspace ?? "" };
  if ("scope" in own) state.request = { ...state.request, scope: own.scope };
  return state.listing ??= rankedRows(state, select, Number(own.limit ?? Infinity)).catch((error) => {
    throw state.refusal = LedgerRefusal.of(error);
  });
}

/** The keys that tell policies apart in response_policy; with the function's own object, that object and these keys. */
export function tracePolicy(): Fields;
export function tracePolicy<T>(theirs: T): T;
export function tracePolicy(theirs: unknown = {}): unknown {
  const state = recalls.getStore();
  if (!state) return theirs;
  const written = typeof theirs === "string" ? parsed(theirs) : null; // of a column that holds text
  if (isFields(written)) return JSON.stringify(tracePolicy(written));
  if (!isFields(theirs)) return theirs;
  if (state.policy === "vector") {
    const inForce = { ...fields(state.request?.limits), ...fields(state.request?.scope) };
    return { recall_policy: "vector", arguments: inForce, ...theirs };
  }
  const kept = picked(fields(state.answer), ["arguments", "exact", "shortened", "dropped"]);
  return { ...theirs, recall_policy: "ranked_ledger", ...kept, embedding: state.embedding };
}

// What recall_decisions itself keeps with a trace's items.
const SNAPSHOT =
  "relevance relevance_source text_relevance summary_match importance recency dependency_boost " +
  "step_index step_distance live_dependents pinned lifecycle_status shortened";

/** The snapshot of an item of the trace; a ranked one gains what it was weighed by. */
export function itemSnapshot<T>(memoryId: unknown, snapshot: T): T {
  const hit = recalls.getStore()?.hits.find((hit) => hit.memory_id === memoryId);
  if (!hit || !isFields(snapshot)) return snapshot;
  return { ...snapshot, recall_policy: "ranked_ledger", ...picked(hit, SNAPSHOT.split(" ")) };
}

function policyOf(request: unknown): RecallPolicy {
  return fields(request).recall_policy === "ranked_ledger" ? "ranked_ledger" : "vector";
}

/** The arguments of recall_decisions. What the request leaves open is not sent, and takes the database's default. */
function recallArguments({ request, vector }: RecallState, limit: number): Fields {
  const asked = fields(request);
  const [scope, limits, ranking] = [fields(asked.scope), fields(asked.limits), fields(asked.ranking)];
  const weights = fields(ranking.weights);
  return set({
    p_trace_by_host: true, // and the rows come along
    p_workspace_id: asked.workspace_id,
    p_query: asked.query,
    p_query_embedding: vector && JSON.stringify(vector),
    p_embedding_model: vector && env("RANKED_LEDGER_EMBEDDING_MODEL"),
    p_project_id: scope.project_only === false ? null : asked.project_id,
    p_only_confirmed: !scope.include_unconfirmed,
    p_include_personal: scope.visibility === "personal",
    p_include_stale: scope.include_stale,
    p_match_count: Math.max(1, Math.min(Number(limits.max_items ?? 10), Math.trunc(limit) || Infinity)),
    p_max_tokens: limits.max_tokens,
    p_current_step: asked.current_step,
    p_min_relevance: asked.min_relevance,
    p_w_similarity: weights.relevance,
    p_w_importance: weights.importance,
    p_w_recency: weights.recency,
    p_w_dependency: weights.dependency,
    p_w_summary: weights.summary, // not sent unless given, as the preset: an older ledger has neither
    p_preset: ranking.preset,
    p_half_life_steps: ranking.half_life_steps,
    p_dependency_saturation: ranking.dependency_saturation,
    p_similarity_floor: ranking.similarity_floor,
    p_similarity_ceiling: ranking.similarity_ceiling,
    p_fusion: ranking.fusion,
    p_fusion_weight: ranking.fusion_weight,
  });
}

async function rankedRows(state: RecallState, select: string, limit: number): Promise<never[]> {
  const answer = await answeredRecall(state, limit);
  if (!Array.isArray(answer.hits)) throw LedgerRefusal.unavailable("unexpected");
  const hits = answer.hits.filter(isHit).slice(0, Math.max(0, limit || 0));
  const rows = rowsBeside(answer.memories, select) ??
    await memoryRows(hits.map((hit) => hit.memory_id), select);
  state.answer = answer;
  state.hits = hits.filter((hit) => rows.has(hit.memory_id)); // one that was forgotten since it was ranked has no row
  return state.hits.map((hit) => ({
    ...rows.get(hit.memory_id),
    ...(hit.shortened === true && { content: hit.summary }),
    similarity: within(1, hit.similarity),
    ranking_score: within(999.9999, hit.ranking_score),
  })) as never[];
}

async function answeredRecall(state: RecallState, limit: number): Promise<Fields> {
  try {
    return fields(await ask("rpc/recall_decisions", recallArguments(state, limit)));
  } catch (error) {
    if (!state.vector || LedgerRefusal.of(error).code !== "RL463") throw error;
    state.vector = null;
    state.embedding = "dimension";
    return fields(await ask("rpc/recall_decisions", recallArguments(state, limit)));
  }
}

/** The rows that came with the ranking, where all that is selected are columns of theirs; null where more is. */
function rowsBeside(memories: unknown, select: string): Map<string, Fields> | null {
  if (!Array.isArray(memories)) return null;
  const rows = memories.filter(isFields);
  const columns = select.split(",").map((column) => column.trim());
  const areTheirs = columns.every((column) =>
    column === "*" || rows.every((row) => Object.hasOwn(row, column))
  );
  if (!areTheirs) return null;
  const selected = columns.includes("*") ? rows : rows.map((row) => picked(row, columns));
  return new Map(rows.map(({ id }, place) => [String(id), selected[place]]));
}

async function memoryRows(ids: string[], select: string): Promise<Map<string, Fields>> {
  const unspaced = select.replace(/"[^"]*"|\s+/g, (part) => part.trim()); // but within quotes, as supabase-js does
  const columns = `${encodeURIComponent(unspaced)},ranked_ledger_id:id`;
  const rows = await rowsOf(ids, `agent_memories?select=${columns}&id`);
  return new Map(rows.map(({ ranked_ledger_id: id, ...row }) => [String(id), row]));
}

/** The answer of the function with `policy`, and with `ledger` at each of its memories. */
function explained(body: Fields, { request, answer, hits, vector, embedding }: RecallState): Fields {
  const { hits: _, ...rest } = answer ?? {};
  const inForce = fields(rest.arguments);
  const policy = {
    ...picked(rest, ["exact", "shortened", "dropped", "hint"]),
    ...(rest.hint && inForce.p_only_confirmed === true ? { hint: UNCONFIRMED } : {}),
    arguments: inForce,
    recall_policy: "ranked_ledger",
    memory_types: ["decision"],
    relevance: !vector ? "text" : inForce.p_fusion === "none" ? "cosine" : inForce.p_fusion,
    embedding,
    not_applied: fields(request?.limits).recency_days == null ? [] : ["limits.recency_days"],
  };
  const memories = Array.isArray(body.memories) &&
    { memories: withLedger(body.memories, hits, fields(request)) };
  return { ...body, ...memories, policy: { ...fields(body.policy), ...policy } };
}

// The database's own hint speaks of its arguments.
const UNCONFIRMED =
  "No decision is in scope. What nobody has confirmed is left out unless scope.include_unconfirmed is " +
  "true; look at the workspace's name, scope.project_only and scope.include_stale, too.";

const SHOWN =
  "step_index importance pinned rationale relevance relevance_source text_relevance summary_match recency " +
  "step_distance live_dependents successor depends_on rests_on_retired shortened tokens";

/** Each memory with the `ledger` of its hit: found by id, else, where the answer has no ids, by its place. */
function withLedger(memories: unknown[], hits: Hit[], request: Fields): unknown[] {
  const byId = new Map(hits.map((hit) => [hit.memory_id, hit]));
  const named = memories.map(fields).map(({ memory_id, id }) =>
    byId.get(String(memory_id)) ?? byId.get(String(id))
  );
  const found = memories.length === hits.length && !named.some(Boolean) ? hits : named;
  // what a hit costs covers no alternatives: those are shown as far as the budget goes
  let room = Number(fields(request.limits).max_tokens ?? Infinity) -
    hits.reduce((sum, hit) => sum + Number(hit.tokens ?? 0), 37);
  return memories.map((memory, place) => {
    const hit = found[place];
    if (!hit || !isFields(memory)) return memory;
    const alternatives = hit.alternatives ?? [];
    const cost = Math.ceil(JSON.stringify(alternatives).length / 4);
    const isShown = hit.shortened !== true && cost <= room;
    if (isShown) room -= cost;
    const ledger = {
      ...picked(hit, SHOWN.split(" ")),
      score: hit.ranking_score,
      dependency: hit.dependency_boost,
    };
    const rest = hit.shortened === true ? { rationale: null } : isShown ? { alternatives } : {};
    return { ...memory, ledger: { ...ledger, ...rest, ...(request.with_hits === true && { hit }) } };
  });
}

/** The first vector in what an embedding service or its wrapper gives; null where none is comparable for pgvector. */
function vectorIn(value: unknown, depth = 0): number[] | null {
  if (depth > 5 || value === null || value === undefined) return null;
  if (typeof value === "string") {
    return value.trimStart().startsWith("[") ? vectorIn(parsed(value), depth + 1) : null;
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) value = Array.from(value as Float32Array);
  if (Array.isArray(value)) {
    if (typeof value[0] !== "number") return vectorIn(value[0], depth + 1);
    const isFinite = value.every((x) => typeof x === "number" && Number.isFinite(Math.fround(x)));
    return isFinite && value.length <= 16_000 && value.some((x) => x !== 0) ? value : null;
  }
  for (const key of ["embedding", "embeddings", "vector", "data"]) {
    const found = vectorIn(fields(value)[key], depth + 1);
    if (found) return found;
  }
  return null;
}

// --- /recall/:request_id/usage --------------------------------------------------------------------------------------

/** The middleware of usage feedback: what it marks as used is counted with the decisions, once however often it is sent. */
export async function usage(c: ContextLike, next: Next): Promise<void> {
  await next();
  const requestId = idInPath(c);
  if (!c.res.ok || !requestId) return;
  await ask("rpc/count_recall_usage", { p_request_id: requestId }).catch(tell("usage was not counted"));
}

// --- /memories/:id/review -------------------------------------------------------------------------------------------

/**
 * The middleware of a review. Where the function fails at the actions supersede and merge, as common copies do, and the
 * memory is a decision, they are carried out here: `by` is the id of the decision that takes its place, `notes` the reason.
 * The function comes first, with whatever it asks of a caller: what it does by itself, or refuses, stays as it is, and so
 * does a failure before it came to changing the memory, where it calls `reviewed`.
 */
export async function review(c: ContextLike, next: Next): Promise<void> {
  const body = fields(parsed(await bodyText(c)));
  if (body.action !== "supersede" && body.action !== "merge") return await next();
  const state = { isLetIn: false };
  let failure: unknown = null;
  await reviews.run(state, () => next()).catch((error) => failure = error ?? "failed");
  if (!failure && (c.res.status !== 500 || !state.isLetIn)) return;
  if (!state.isLetIn) throw failure;
  try {
    const answer = await supersession(idInPath(c), body);
    if (answer) return respond(c, 200, JSON.stringify(answer));
  } catch (error) {
    return refuse(c, LedgerRefusal.of(error));
  }
  if (failure) throw failure;
}

/** Called around what a review changes: whoever comes so far may review. */
export function reviewed<T>(changes: T): T {
  const state = reviews.getStore();
  if (state) state.isLetIn = true;
  return changes;
}

async function supersession(id: string | undefined, body: Fields): Promise<Fields | null> {
  const { action, by, notes, actor_label: actor } = body;
  const [memory] = id ? await rowsOf([id], "agent_memories?select=workspace_id,memory_type&id") : [];
  const workspace = memory?.workspace_id;
  if (memory?.memory_type !== "decision" || (body.workspace_id ?? workspace) !== workspace) return null;
  if (typeof by !== "string" || !UUID.test(by)) {
    const message = `To ${action} a decision, send "by": the id of the decision that takes its place.`;
    const hint = `{"action": "${action}", "by": "<id>", "notes": "<reason>"}`;
    throw new LedgerRefusal(400, "by_missing", message, hint);
  }
  const decisions = { p_workspace_id: workspace, p_old: id, p_new: by };
  const sent = set({ ...decisions, p_action: action, p_reason: notes, p_actor: actor });
  const { old: replaced, new: successor, changed } = fields(await ask("rpc/supersede_decision", sent));
  return { action, changed, memory: replaced, by: successor };
}

// --- /writeback -----------------------------------------------------------------------------------------------------

/**
 * The middleware of a write-back. A decision may be an object beside the plain strings: `content`, and any of
 * `rationale`, `importance` (0 to 1), `step_index` (0 to 1,000,000,000), `alternatives` (at most 20 texts), `depends_on`
 * (at most 100 memory ids), `confidence` (0 to 1). The list `decisions` stands in `memory_payload`, in the body or in
 * `payload`. The function is shown the contents; the rest goes to the ledger with the row that `memory` is given, and the answer gains
 * `ledger`: what was written there, and what was not.
 */
export function writeback(z: ZodNamespace): Middleware {
  const schema = decisionSchema(z as unknown as Zod);
  return async (c, next) => {
    const body = fields(parsed(await bodyText(c)));
    const lists = [["memory_payload", body.memory_payload], ["", body], ["payload", body.payload]] as const;
    const [name, holder] = lists.find(([, one]) => Array.isArray(fields(one).decisions)) ?? ["", {}];
    const sent = decisionsOf(holder);
    const kept: Kept[] = sent.flatMap((decision, index) =>
      isFields(decision) ? [{ index, decision, text: folded(decision.content) }] : []
    );
    if (!kept.length) return await next();
    const wrong = refusalOfDecisions(schema, kept, [name, "decisions"].filter(Boolean));
    if (wrong) {
      // refused by the function first, which looks at who calls and for which workspace, and whose headers the answer keeps
      fields(holder).decisions = 0;
      replaceBody(c, JSON.stringify(body));
      await next();
      if (c.res.ok || [400, 422, 500].includes(c.res.status)) {
        respond(c, wrong.status, JSON.stringify(wrong.body));
      }
      return;
    }
    fields(holder).decisions = sent.map((decision) => isFields(decision) ? decision.content : decision);
    replaceBody(c, JSON.stringify(body));
    const writing = { kept, decisions: sent.length, isAsked: false };
    await writes.run(writing, () => next());
    if (!c.res.ok) return;
    const ledger = await written(writing);
    await editJson(c, (answer) => ({ ...answer, ledger }));
  };
}

function decisionsOf(holder: unknown): unknown[] {
  const { decisions } = fields(holder);
  return Array.isArray(decisions) ? decisions : [];
}

/**
 * Called around the row, or the rows, that a write-back inserts: those of decisions that were sent as objects gain what
 * the ledger reads from `metadata`, their own confidence, and an id, so that they can be linked. For inserts only: an
 * upsert would write the new id over the one that is there.
 */
export function memory<T>(rows: T): T {
  const writing = writes.getStore();
  if (!writing) return rows;
  const { kept } = writing;
  const taken = new Set<Kept>();
  const isDecision = (row: unknown) => fields(row).memory_type === "decision";
  const decisions = [rows].flat().filter(isDecision);
  if (decisions.length) writing.isAsked = true;
  // by its text, else by its place, where there are as many rows as there were decisions
  const inPlace = (row: unknown) =>
    decisions.length === writing.decisions
      ? kept.filter((one) => one.index === decisions.indexOf(row as never) && !taken.has(one))
      : [];
  const filled = [rows].flat().map((row: unknown) => {
    if (!isFields(row) || !isDecision(row)) return row;
    const text = folded(row.content);
    const same = kept.filter((one) => !taken.has(one) && one.text === text);
    const one = same.find((one) => !one.memoryId) ?? same[0] ?? inPlace(row)[0];
    if (!one) return row;
    taken.add(one);
    one.memoryId = typeof row.id === "string" ? row.id : crypto.randomUUID();
    one.workspaceId = row.workspace_id;
    const ours = set(picked(one.decision, ["rationale", "importance", "step_index", "alternatives"]));
    const theirs = fields(row.metadata);
    const own = theirs.agent_memory; // enrolment reads it before what is beside it
    const metadata = isFields(own)
      ? { ...theirs, agent_memory: { ...own, ...ours } }
      : { ...theirs, ...ours };
    return { ...row, ...set({ confidence: one.decision.confidence }), id: one.memoryId, metadata };
  });
  if (!taken.size) return rows;
  if (!Array.isArray(rows)) return filled[0] as T;
  // PostgREST writes null where one row of several lacks a key that another has
  const isGiven = (key: string) => filled.some((row) => fields(row)[key] !== undefined);
  const absent = {
    ...(isGiven("metadata") && { metadata: {} }),
    ...(isGiven("confidence") && { confidence: 0.5 }),
  };
  const told = (row: Fields) => Object.entries(row).filter(([, value]) => value !== undefined);
  return filled.map((row) =>
    isFields(row) ? { id: crypto.randomUUID(), ...absent, ...Object.fromEntries(told(row)) } : row
  ) as T;
}

function decisionSchema(zod: Zod): Schema {
  const text = zod.string().regex(/\S/).regex(/^[^\0]*$/).max(262_144);
  return zod.object({
    content: text,
    rationale: zod.string().regex(/^[^\0]*$/).max(262_144).nullish(),
    importance: zod.number().min(0).max(1).nullish(),
    step_index: zod.number().int().min(0).max(1_000_000_000).nullish(),
    alternatives: zod.array(text).max(20).nullish(),
    depends_on: zod.array(zod.string().regex(UUID)).max(100).nullish(),
    confidence: zod.number().min(0).max(1).nullish(),
  }).strict();
}

// Bounded, so that no text makes them slow.
const SECRETS = [
  /\b(sk-[\w-]{20}|sb_secret_\w{16}|(gh[pousr]_|github_pat_)\w{30}|xox[abeoprs]-[\w-]{10}|AIza[\w-]{35})/,
  /\b([sr]k_(live|test)_\w{16}|glpat-[\w-]{16}|hf_\w{20}|npm_\w{30}|SG\.[\w-]{16}|sbp_\w{30}|Bearer [\w.~+/-]{20})/,
  /\b(AKIA|ASIA)[0-9A-Z]{16}\b|\beyJ[\w-]{10,500}\.eyJ[\w-]{10}|-----BEGIN [A-Z ]{0,40}PRIVATE KEY/,
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{1,100}:[^\s:/@]{3,100}@/i,
  /\b(password|passwd|secret|token|api[_-]?key)["']?\s{0,5}[:=]\s{0,5}["']?(?=\S{0,99}\d)(?=\S{0,99}[a-z])\S{12}/i,
];

/** Why a write-back is refused: a decision that is not valid, or a secret in what the function does not get to see. */
function refusalOfDecisions(
  schema: Schema,
  kept: Kept[],
  where: string[],
): { status: number; body: Fields } | null {
  const issues = kept.flatMap(({ index, decision }) =>
    (schema.safeParse(decision).error?.issues ?? []).map(({ path, message }) => ({
      path: [...where, index, ...path],
      message,
    }))
  );
  if (issues.length) {
    return { status: 400, body: { error: "A decision is not valid; nothing was written.", issues } };
  }
  for (const { index, decision: { rationale, alternatives } } of kept) {
    const texts = [rationale ?? "", alternatives ?? []].flat().map(String);
    if (texts.some((text) => SECRETS.some((secret) => secret.test(text)))) {
      const error = `What looks like a secret is in ${
        where.join(".")
      }.${index}, beside its content; nothing was written.`;
      return { status: 422, body: { error } };
    }
  }
  return null;
}

/**
 * What the ledger holds of the objects, once they are linked: `decisions` as it has them, `linked` and `not_linked` to what
 * they depend on, and `not_written` with its `code`: not_enrolled (`memory_id` is stored, the ledger lacks it), other_text
 * (what was stored is not what was sent) or nothing_stored.
 */
async function written({ kept, isAsked }: Writing): Promise<Fields> {
  const ids = kept.flatMap(({ memoryId }) => memoryId && UUID.test(memoryId) ? [memoryId] : []);
  const path = "agent_decision_ledger?select=memory_id,step_index,importance&memory_id";
  let missing = "the memory is stored and was not enrolled: enroll_missing_decisions mends it";
  const found = await rowsOf(ids, path).catch((error) => {
    missing = LedgerRefusal.of(error).message;
    return [];
  });
  const rows = new Map(found.map((row) => [row.memory_id, row]));
  const report = { decisions: [] as Fields[], linked: [] as Fields[], not_linked: [] as Fields[] };
  const absent: Fields[] = [];
  for (const one of kept) {
    const row = rows.get(one.memoryId);
    if (row) {
      report.decisions.push({ index: one.index, ...row });
      await link(one, report);
    } else {
      const [code, reason] = one.memoryId
        ? ["not_enrolled", missing]
        : isAsked
        ? ["other_text", "the function stored another text, and the ledger has nothing but that"]
        : ["nothing_stored", "the function stored no row, as where it knows the idempotency key"];
      absent.push({ index: one.index, memory_id: one.memoryId ?? null, code, reason });
    }
  }
  return { ...report, not_written: absent };
}

async function link(
  { decision, memoryId, workspaceId }: Kept,
  report: Record<string, Fields[]>,
): Promise<void> {
  let down: LedgerRefusal | null = null; // one call without an answer is enough
  for (const ground of new Set([decision.depends_on ?? []].flat())) {
    const edge = { memory_id: memoryId, depends_on: ground };
    try {
      if (down) throw down;
      await ask("rpc/link_decisions", { p_workspace_id: workspaceId, p_from: memoryId, p_to: ground });
      report.linked.push(edge);
    } catch (error) {
      const refusal = LedgerRefusal.of(error);
      if (refusal.status >= 500) down = refusal;
      report.not_linked.push({ ...edge, code: refusal.code, reason: refusal.message });
    }
  }
}

// --- requests and answers -------------------------------------------------------------------------------------------

/** The last id in the path: no route has another one behind its own. */
function idInPath(c: ContextLike): string | undefined {
  return new URL(c.req.raw.url).pathname.split("/").findLast((part) => UUID.test(part));
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
  status: number,
  body: string,
  type = "application/json; charset=UTF-8",
): void {
  const headers = new Headers(c.res.headers);
  for (const name of ["content-length", "content-encoding", "etag"]) headers.delete(name);
  headers.set("content-type", type);
  (c as { res: Response | undefined }).res = undefined; // else Hono lays the old headers over the new ones
  c.res = new Response(body, { status, headers });
}

function refuse(c: ContextLike, { status, code, message, hint }: LedgerRefusal, more: Fields = {}): void {
  if (status >= 500) console.error(`ranked_ledger: ${message} (${code})`);
  respond(c, status, JSON.stringify({ error: message, code, hint, ...more }));
}

/** Edits the answer where it is a JSON object, and leaves any other one alone. */
async function editJson(c: ContextLike, edit: (body: Fields) => Fields): Promise<void> {
  const type = c.res.headers.get("content-type") ?? "";
  if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type) || c.res.headers.has("content-encoding")) return;
  const { status } = c.res;
  const text = await c.res.text();
  const body = parsed(text);
  respond(c, status, isFields(body) ? JSON.stringify(edit(body)) : text, type);
}

// --- the database ---------------------------------------------------------------------------------------------------

/** Asks PostgREST, once: a POST with a body, else a GET. Whatever is not an answer is a LedgerRefusal. */
async function ask(path: string, body?: Fields): Promise<unknown> {
  const [url, key] = [env("SUPABASE_URL"), env("SUPABASE_SERVICE_ROLE_KEY")];
  if (!url || !key) throw LedgerRefusal.unavailable("not_configured");
  const headers: Record<string, string> = { apikey: key, "content-type": "application/json" };
  if (!key.startsWith("sb_")) headers.authorization = `Bearer ${key}`; // a key of the new kind is no JWT
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${url.replace(/\/+$/, "")}/rest/v1/${path}`, {
      ...(body && { method: "POST", body: JSON.stringify(body) }),
      headers,
      redirect: "error", // it would take the key along
      signal: AbortSignal.timeout(milliseconds("RANKED_LEDGER_TIMEOUT_MS", 10_000)),
    });
    text = await response.text();
  } catch (error) {
    const isLate = error instanceof Error && error.name === "TimeoutError";
    throw LedgerRefusal.unavailable(isLate ? "timeout" : "unreachable");
  }
  const answer = parsed(text);
  if (!response.ok) throw refusalOf(response.status, fields(answer));
  if (answer === undefined) throw LedgerRefusal.unavailable("unexpected");
  return answer;
}

/** Rows by id, a hundred a request: a URL has an end. `path` ends with the column. */
async function rowsOf(ids: string[], path: string): Promise<Fields[]> {
  const starts = Array.from({ length: Math.ceil(ids.length / 100) }, (_, part) => part * 100);
  const answers = starts.map((start) => ask(`${path}=in.(${ids.slice(start, start + 100).join(",")})`));
  return (await Promise.all(answers)).flat().filter(isFields);
}

const NOT_INSTALLED = /^(PGRST106|PGRST202|PGRST203|PGRST205|42883|42P01|RL501)$/;
const INVALID = /^(22\w{3}|23514|54000|RL462|RL463|PGRST102)$/;
const STATUS: Record<string, number> = { RL404: 404, RL409: 409, RL410: 410, RL461: 409 };

/** By its code, never by its text. The ledger's own words are passed on, those of a database that fails are not. */
function refusalOf(status: number, { code: given, message, hint }: Fields): LedgerRefusal {
  const code = typeof given === "string" ? given : "";
  if (NOT_INSTALLED.test(code)) return LedgerRefusal.unavailable("not_installed");
  const own = INVALID.test(code) ? 400 : STATUS[code];
  if (own) return new LedgerRefusal(own, code, String(message), typeof hint === "string" ? hint : null);
  if (status === 401 || status === 403) return LedgerRefusal.unavailable("key_refused");
  return code
    ? LedgerRefusal.unavailable("failed", code)
    : LedgerRefusal.unavailable("unexpected", `HTTP ${status}`);
}

/** Logs a failure that costs nobody the answer. */
function tell(what: string): (error: unknown) => void {
  return (error) => console.warn(`ranked_ledger: ${what}: ${LedgerRefusal.of(error).message}`);
}

// --- values ---------------------------------------------------------------------------------------------------------

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
  return UUID.test(String(fields(value).memory_id));
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
