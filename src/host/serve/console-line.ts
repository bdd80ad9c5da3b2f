import type { LogEvent as DaemonEvent, LogFields as DaemonFields } from '../../enclave/log.ts'
import type { LogEvent as WorkerEvent, LogFields as WorkerFields } from '../../worker/http/log.ts'

/** Events of the supervisor itself, for a console that strangers can read. */
export type SupervisorEvent =
  /** The router was not started, for `reason`. */
  | 'start_refused'
  | 'simulated_platform'
  /** The router waits for an unseal document of its operator. */
  | 'sealed'
  /** The secrets of a document were refused, for `reason`. */
  | 'secrets_refused'
  | 'serving'
  /** The ledger is behind the position that the operator's document names. */
  | 'ledger_behind'
  | 'draining'
  | 'stopped'

const SENTENCE = /^[\x20-\x7e]{1,2000}$/

/** The allowed forms of values; any other value is left out. */
const FORMS = {
  time: (value) => typeof value === 'string' && /^[0-9TZ:.-]{1,32}$/.test(value),
  flag: (value) => typeof value === 'boolean',
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  /** An identifier. */
  word: (value) => typeof value === 'string' && /^[A-Za-z0-9_.:/-]{1,128}$/.test(value),
  /** One line in this project's own words. */
  sentence: (value) => typeof value === 'string' && SENTENCE.test(value),
  /** Positions in the source code. */
  frames: (value) => Array.isArray(value) && value.every((one) => SENTENCE.test(String(one))),
} as const satisfies Readonly<Record<string, (value: unknown) => boolean>>

/**
 * The members of a log line that may be shown, with the form of their values. Token counts and costs are never shown:
 * together with sizes and times on the network they would tell the host more than it can see itself.
 */
const MEMBERS = {
  at: 'time',
  event: 'word',
  error: 'word',
  error_code: 'word',
  frames: 'frames',
  provider: 'word',
  reason: 'sentence',
  path: 'word',
  request_id: 'word',
  method: 'word',
  endpoint: 'word',
  status: 'number',
  code: 'word',
  route: 'word',
  modality: 'word',
  attempt: 'number',
  failure: 'word',
  failover: 'flag',
  duration_ms: 'number',
  first_delta_ms: 'number',
  prompt_tokens: undefined,
  completion_tokens: undefined,
  cost_nano: undefined,
  receipt: 'flag',
  signed: 'word',
  generation: 'number',
  count: 'number',
} as const satisfies Readonly<
  Record<'at' | 'event' | keyof DaemonFields | keyof WorkerFields, keyof typeof FORMS | undefined>
>

/** Every event of supervisor, daemon and worker; the compiler ensures that none is missing. */
const EVENTS: Readonly<Record<SupervisorEvent | DaemonEvent | WorkerEvent, true>> = {
  start_refused: true,
  simulated_platform: true,
  sealed: true,
  secrets_refused: true,
  serving: true,
  ledger_behind: true,
  draining: true,
  stopped: true,
  link_failed: true,
  attestation_failed: true,
  unseal_refused: true,
  unsealed: true,
  streams_left_to_workers: true,
  clock_behind: true,
  unexpected_error: true,
  request: true,
  attempt_failed: true,
  attempt_served: true,
  stream_cut: true,
  settled: true,
  settle_failed: true,
  stream_failed: true,
  release_failed: true,
  usage_estimated: true,
  usage_capped: true,
  settle_quarantined: true,
  answer_replayed: true,
  kept_answer_unreadable: true,
  webhook_failed: true,
  config_loaded: true,
  link_unavailable: true,
  link_chunks_ended: true,
  link_messages_ended: true,
  storage_unavailable: true,
  row_waited: true,
  audit_outcome_lost: true,
  sweep: true,
}

/**
 * The part of a log line that readers of the console may see: a known event, and those members of the table whose
 * values have the expected form. Undefined where nothing is left.
 */
export function consoleLine(text: string): string | undefined {
  const parsed = parseObject(text)
  const event = parsed['event']
  if (typeof event !== 'string' || !Object.hasOwn(EVENTS, event)) return undefined
  const allowed = Object.entries(MEMBERS).flatMap(([name, form]) => {
    const value = parsed[name]
    return form !== undefined && FORMS[form](value) ? [[name, value] as const] : []
  })
  return JSON.stringify(Object.fromEntries(allowed))
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  } catch {
    return {}
  }
}
