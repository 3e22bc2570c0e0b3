// An `agent-memory-api` as tests/patches needs one: the contract's routes in our own words, and its known faults
// with them. A copy that somebody runs looks different: the patch may rest on the contract, not on this file.
import { createClient } from "@supabase/supabase-js";
import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { z } from "zod";

const supabase = createClient(
  Deno.env.get("SUPABASE_URL") ?? "",
  Deno.env.get("SUPABASE_SERVICE_ROLE_KEY") ?? "",
  { auth: { persistSession: false } },
);
const accessKey = Deno.env.get("MCP_ACCESS_KEY");
const embeddingBase = Deno.env.get("OPENROUTER_BASE_URL") ?? "https://openrouter.ai/api/v1";
const embeddingModel = "openai/text-embedding-3-small";

const visibility = z.enum(["personal", "channel", "project", "workspace", "organization"]);
const place = {
  schema_version: z.string().min(1),
  workspace_id: z.string().min(1),
  project_id: z.string().optional(),
  task_id: z.string().optional(),
  flow_id: z.string().optional(),
  runtime: z.object({ name: z.string().min(1), version: z.string().optional() }),
  channel: z.object({ kind: z.string(), id: z.string(), thread_id: z.string() }).partial().default({}),
};

const recallSchema = z.object({
  ...place,
  query: z.string().min(1),
  scope: z.object({
    visibility: visibility.default("project"),
    project_only: z.boolean().default(true),
    include_unconfirmed: z.boolean().default(false),
    include_stale: z.boolean().default(false),
  }).default({ visibility: "project", project_only: true, include_unconfirmed: false, include_stale: false }),
  limits: z.object({
    max_items: z.number().int().min(1).max(50).default(10),
    max_tokens: z.number().int().min(256).max(20000).default(4000),
    recency_days: z.number().int().positive().optional(),
  }).default({ max_items: 10, max_tokens: 4000 }),
  sensitivity: z.string().default("normal"),
});

const texts = z.array(z.string().min(1)).default([]);
const artifact = z.object({ kind: z.string(), uri: z.string().optional(), description: z.string().min(1) });
const writebackSchema = z.object({
  ...place,
  visibility: visibility.default("project"),
  provenance: z.object({
    // whoever calls may say user_confirmed
    default_status: z.enum(["observed", "inferred", "user_confirmed", "imported", "generated"]).default(
      "generated",
    ),
    confidence: z.number().min(0).max(1).default(0.5),
  }).default({ default_status: "generated", confidence: 0.5 }),
  idempotency_key: z.string().min(1).optional(),
  memory_payload: z.object({
    decisions: texts,
    outputs: texts,
    lessons: texts,
    constraints: texts,
    unresolved_questions: texts,
    next_steps: texts,
    failures: texts,
    artifacts: z.array(artifact).default([]),
  }),
});

const memoryTypes = {
  decisions: "decision",
  outputs: "output",
  lessons: "lesson",
  constraints: "constraint",
  unresolved_questions: "open_question",
  next_steps: "work_log",
  failures: "failure",
} as const;

const usageSchema = z.object({
  used_memory_ids: z.array(z.string().uuid()).default([]),
  ignored: z.array(z.object({ memory_id: z.string().uuid(), reason: z.string().optional() })).default([]),
});

const reviewSchema = z.object({
  action: z.enum([
    "confirm",
    "edit",
    "evidence_only",
    "restrict_scope",
    "mark_stale",
    "merge",
    "reject",
    "dispute",
    "supersede",
  ]),
  actor_id: z.string().optional(),
  actor_label: z.string().optional(),
  notes: z.string().optional(),
  content: z.string().min(1).optional(),
  summary: z.string().min(1).optional(),
  visibility: visibility.optional(),
});
type Review = z.infer<typeof reviewSchema>;

const auditEvents: Partial<Record<Review["action"], string>> = {
  confirm: "memory_confirmed",
  reject: "memory_rejected",
  supersede: "memory_superseded",
  dispute: "memory_disputed",
};

async function embed(input: string): Promise<number[]> {
  const key = Deno.env.get("OPENROUTER_API_KEY");
  if (!key) throw new Error("OPENROUTER_API_KEY is not set");
  const response = await fetch(`${embeddingBase}/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: embeddingModel, input }),
  });
  if (!response.ok) {
    throw new Error(`the embedding service answered ${response.status}: ${await response.text()}`);
  }
  const { data } = await response.json();
  return data[0].embedding;
}

/** The data of a PostgREST answer; its error is thrown, and so becomes a 500. */
function must<T>({ data, error }: { data: T; error: { message: string } | null }): T {
  if (error) throw new Error(error.message);
  return data;
}

const secret = /\b(sk-[\w-]{20,}|sb_secret_\w{16,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.)|BEGIN [A-Z ]*PRIVATE KEY/;
const spokenLine = /^\s*(user|assistant|human|ai|system)\s*:/i;

/** Why a text may not be kept, or null. */
function refusal(text: string): string | null {
  if (secret.test(text)) return "it holds a secret";
  return text.split("\n").filter((line) => spokenLine.test(line)).length < 4 ? null : "it is a transcript";
}

/** Notes what happened to memories of one workspace. */
async function audit(
  { workspace_id, project_id, task_id }: { workspace_id: string; project_id?: string; task_id?: string },
  events: Record<string, unknown>[],
) {
  const rows = events.map((event) => ({ workspace_id, project_id, task_id, ...event }));
  must(await supabase.from("agent_memory_audit_events").insert(rows));
}

/** What an action changes on the memory itself. */
function changesOf({ action, content, summary, visibility }: Review): Record<string, unknown> {
  switch (action) {
    case "confirm":
      return {
        review_status: "confirmed",
        provenance_status: "user_confirmed",
        requires_user_confirmation: false,
        can_use_as_instruction: true,
        last_confirmed_at: new Date().toISOString(),
      };
    case "edit":
      return { content, summary };
    case "evidence_only":
      return { review_status: "evidence_only", can_use_as_instruction: false };
    case "restrict_scope":
      return { review_status: "restricted", visibility: visibility ?? "personal" };
    case "mark_stale":
      return { review_status: "stale", lifecycle_status: "stale" };
    case "reject":
      return { review_status: "rejected", lifecycle_status: "rejected", can_use_as_evidence: false };
    case "dispute":
      return { lifecycle_status: "disputed" };
    default: // merge and supersede: nothing is changed, and the empty update fails
      return {};
  }
}

/** Where a request comes from, as the columns of a memory and of a trace. */
function columnsOf({ runtime, channel, ...payload }: z.infer<z.ZodObject<typeof place>>) {
  return {
    workspace_id: payload.workspace_id,
    project_id: payload.project_id,
    task_id: payload.task_id,
    flow_id: payload.flow_id,
    runtime_name: runtime.name,
    runtime_version: runtime.version,
    channel_kind: channel.kind,
    channel_id: channel.id,
  };
}

async function findTrace(requestId: string) {
  const traces = supabase.from("agent_memory_recall_traces");
  const trace = must(await traces.select().eq("request_id", requestId).maybeSingle());
  if (!trace) throw new HTTPException(404, { message: "no such recall" });
  return trace;
}

async function findMemory(id: string) {
  const memory = must(await supabase.from("agent_memories").select().eq("id", id).maybeSingle());
  if (!memory) throw new HTTPException(404, { message: "no such memory" });
  return memory;
}

function newestMemories(c: Context) {
  const workspace = c.req.query("workspace_id");
  if (!workspace) throw new HTTPException(400, { message: "workspace_id is missing" });
  const query = supabase.from("agent_memories").select().eq("workspace_id", workspace);
  const project = c.req.query("project_id");
  return (project ? query.eq("project_id", project) : query)
    .order("created_at", { ascending: false })
    .limit(Math.min(Number(c.req.query("limit")) || 50, 200));
}

const app = new Hono().basePath("/agent-memory-api");

app.use("*", async (c, next) => {
  const given = c.req.header("x-brain-key") ?? c.req.query("key");
  if (!accessKey || given !== accessKey) {
    return c.json({ error: "the access key is missing or wrong" }, 401);
  }
  await next();
});

app.onError((error, c) => {
  if (error instanceof z.ZodError) {
    return c.json({ error: "the body is invalid", issues: error.issues }, 400);
  }
  if (error instanceof SyntaxError) return c.json({ error: "the body is no JSON" }, 400);
  if (error instanceof HTTPException) return c.json({ error: error.message }, error.status);
  console.error(error);
  return c.json({ error: error.message }, 500);
});

app.get("/health", (c) => c.json({ ok: true, service: "agent-memory-api" }));

app.post("/recall", async (c) => {
  const payload = recallSchema.parse(await c.req.json());
  const embedding = await embed(payload.query);
  const { data: matches, error: matchError } = await supabase.rpc("match_thoughts", {
    query_embedding: embedding,
    match_threshold: 0.1,
    match_count: payload.limits.max_items * 5,
    filter: {},
  });
  if (matchError) throw new Error(matchError.message);

  const similarities = new Map<string, number>();
  for (const match of matches) similarities.set(match.id, match.similarity);
  const { data: memories, error: memoriesError } = await supabase
    .from("agent_memories")
    .select()
    .eq("workspace_id", payload.workspace_id)
    .in("thought_id", [...similarities.keys()]);
  if (memoriesError) throw new Error(memoriesError.message);

  const { scope, limits } = payload;
  const oldest = limits.recency_days ? Date.now() - limits.recency_days * 86_400_000 : 0;
  const pool = memories
    .filter((m) => !scope.project_only || !payload.project_id || m.project_id === payload.project_id)
    .filter((m) => m.lifecycle_status === "active" || (scope.include_stale && m.lifecycle_status === "stale"))
    .filter((m) =>
      scope.include_unconfirmed || !m.requires_user_confirmation || m.review_status !== "pending"
    )
    .filter((m) => scope.visibility === "personal" || m.visibility !== "personal")
    .filter((m) => Date.parse(m.created_at) >= oldest)
    .map((m) => {
      const similarity = similarities.get(m.thought_id) ?? 0;
      return { ...m, similarity, ranking_score: similarity + 0.05 * Number(m.confidence) };
    })
    .sort((a, b) => b.ranking_score - a.ranking_score);
  const ranked = pool.slice(0, payload.limits.max_items);

  const requestId = crypto.randomUUID();
  const { data: trace, error: traceError } = await supabase
    .from("agent_memory_recall_traces")
    .insert({
      request_id: requestId,
      ...columnsOf(payload),
      query: payload.query,
      schema_version: payload.schema_version,
      request_payload: payload,
      response_policy: {
        max_items: payload.limits.max_items,
        include_unconfirmed: payload.scope.include_unconfirmed,
      },
    })
    .select("id")
    .single();
  if (traceError) throw new Error(traceError.message);

  const { error: itemsError } = await supabase.from("agent_memory_recall_items").insert(
    ranked.map((m, index) => ({
      trace_id: trace.id,
      memory_id: m.id,
      rank: index + 1,
      similarity: m.similarity,
      ranking_score: m.ranking_score,
      use_policy_snapshot: {
        can_use_as_instruction: m.can_use_as_instruction,
        can_use_as_evidence: m.can_use_as_evidence,
        requires_user_confirmation: m.requires_user_confirmation,
      },
    })),
  );
  if (itemsError) throw new Error(itemsError.message);

  const returned = {
    event_type: "recall_requested",
    trace_id: trace.id,
    payload: { returned: ranked.length },
  };
  await audit(payload, [returned]);

  return c.json({
    schema_version: payload.schema_version,
    request_id: requestId,
    memories: ranked.map((m) => ({
      memory_id: m.id,
      memory_type: m.memory_type,
      summary: m.summary,
      content: m.content,
      task_id: m.task_id,
      lifecycle_status: m.lifecycle_status,
      confidence: m.confidence,
      similarity: m.similarity,
      ranking_score: m.ranking_score,
      can_use_as_instruction: m.can_use_as_instruction,
      created_at: m.created_at,
    })),
  });
});

app.post("/writeback", async (c) => {
  const payload = writebackSchema.parse(await c.req.json());
  const { artifacts, ...lists } = payload.memory_payload;
  const entries = [
    ...Object.entries(memoryTypes).flatMap(([field, memory_type]) =>
      lists[field as keyof typeof lists].map((content) => ({ memory_type, content, metadata: {} }))
    ),
    ...artifacts.map(({ description, ...metadata }) => (
      { memory_type: "artifact_reference", content: description, metadata }
    )),
  ];
  for (const { memory_type, content } of entries) {
    const reason = refusal(content);
    if (reason) return c.json({ error: `a ${memory_type} is refused: ${reason}` }, 422);
  }

  const keys = entries.map((_, index) => payload.idempotency_key && `${payload.idempotency_key}:${index}`);
  if (payload.idempotency_key) {
    const kept = supabase.from("agent_memories").select("memory_id:id, memory_type, summary");
    const known = must(await kept.in("idempotency_key", keys)); // in whichever workspace
    if (known?.length) return c.json({ schema_version: payload.schema_version, memories: known });
  }

  const embeddings = await Promise.all(entries.map(({ content }) => embed(content)));
  const thoughtIds: string[] = [];
  for (const [index, { memory_type, content }] of entries.entries()) {
    const p_payload = { metadata: { source: "agent-memory-api", memory_type } };
    const thought = must(await supabase.rpc("upsert_thought", { p_content: content, p_payload }));
    must(await supabase.from("thoughts").update({ embedding: embeddings[index] }).eq("id", thought.id));
    thoughtIds.push(thought.id);
  }

  const { data: memories, error } = await supabase
    .from("agent_memories")
    .insert(
      entries.map((entry, index) => ({
        ...columnsOf(payload),
        ...entry,
        thought_id: thoughtIds[index],
        channel_thread_id: payload.channel.thread_id,
        visibility: payload.visibility,
        summary: entry.content.slice(0, 160),
        provenance_status: payload.provenance.default_status,
        confidence: payload.provenance.confidence,
        idempotency_key: keys[index],
      })),
    )
    .select("memory_id:id, memory_type, summary");
  if (error) throw new Error(error.message);

  await audit(payload, memories.map(({ memory_id }) => ({ event_type: "memory_written", memory_id })));
  return c.json({ schema_version: payload.schema_version, memories });
});

app.post("/recall/:request_id/usage", async (c) => {
  const { used_memory_ids, ignored } = usageSchema.parse(await c.req.json());
  const trace = await findTrace(c.req.param("request_id"));
  const marks = [
    ...used_memory_ids.map((memory_id) => ({ memory_id, used: true, ignored_reason: null })),
    ...ignored.map(({ memory_id, reason }) => ({ memory_id, used: false, ignored_reason: reason })),
  ];
  for (const { memory_id, ...mark } of marks) {
    const items = supabase.from("agent_memory_recall_items");
    must(await items.update(mark).eq("trace_id", trace.id).eq("memory_id", memory_id));
  }
  const eventOf = (used: boolean) => used ? "memory_used" : "memory_ignored";
  await audit(
    trace,
    marks.map(({ memory_id, used }) => ({ event_type: eventOf(used), memory_id, trace_id: trace.id })),
  );
  return c.json({ ok: true, used: used_memory_ids.length, ignored: ignored.length });
});

app.get("/memories", async (c) => c.json({ memories: must(await newestMemories(c)) }));

app.get(
  "/memories/review",
  async (c) => c.json({ memories: must(await newestMemories(c).eq("review_status", "pending")) }),
);

app.get("/memories/:id", async (c) => c.json({ memory: await findMemory(c.req.param("id")) }));

app.patch("/memories/:id/review", async (c) => {
  const review = reviewSchema.parse(await c.req.json());
  const before = await findMemory(c.req.param("id"));
  const { data: after, error } = await supabase
    .from("agent_memories")
    .update(changesOf(review))
    .eq("id", before.id)
    .select()
    .single();
  if (error) throw new Error(error.message);

  const { action, actor_id, actor_label, notes } = review;
  const reviewed = { memory_id: before.id, action, actor_id, actor_label, notes, before, after };
  must(await supabase.from("agent_memory_review_actions").insert(reviewed));
  const event_type = auditEvents[action] ?? "memory_edited";
  await audit(before, [{ event_type, memory_id: before.id, actor_kind: "user", actor_label }]);
  return c.json({ memory: after });
});

app.get("/recall-traces/:request_id", async (c) => {
  const trace = await findTrace(c.req.param("request_id"));
  const items = supabase.from("agent_memory_recall_items");
  return c.json({ trace, items: must(await items.select().eq("trace_id", trace.id).order("rank")) });
});

Deno.serve(app.fetch);
