import {
  concatBytes,
  equalBytes,
  fromUtf8,
  toHex,
  utf8,
  type Bytes,
} from '../../../protocol/bytes.ts'
import { canonicalJson } from '../../../protocol/canonical-json.ts'
import { sha384 } from '../../../protocol/digest.ts'
import type { DstackEvent } from './report.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'

/** The register that the guest itself extends, and the type of these events. */
const RUNTIME_REGISTER = 3
const RUNTIME_EVENT = 0x0800_0001

/** After these events the workload runs and can extend the register with any value. */
const BOOT_ENDS: ReadonlySet<string> = new Set(['boot-mr-done', 'system-ready'])

/** What the guest's system measured before it started the workload. Lowercase hex. */
export interface BootFacts {
  readonly composeHash: string
  readonly osImageHash: string | undefined
  readonly appId: string | undefined
  readonly instanceId: string | undefined
  /** JSON with `name` and `id`, measured after boot: only a claim. */
  readonly keyProvider: string | undefined
}

/**
 * Replays the runtime events into RTMR3 and reads them. The digest of every event is computed from its payload, never
 * taken from the log; events after the end of boot are replayed but not trusted.
 * @throws EvidenceRefused `event_log` when the replayed value is not the measured one, or the log lacks a required
 *   event or has one twice
 */
export async function replayEventLog(
  events: readonly DstackEvent[],
  measured: Bytes,
): Promise<BootFacts> {
  const runtime = events.filter(({ imr }) => imr === RUNTIME_REGISTER)
  if (runtime.length === 0) throw new EvidenceRefused('event_log')
  let register: Bytes = new Uint8Array(48)
  for (const event of runtime) {
    if (event.type !== RUNTIME_EVENT) throw new EvidenceRefused('event_log')
    // Each extension depends on the one before it.
    const digest = await eventDigest(event)
    register = await sha384(concatBytes(register, digest))
  }
  if (!equalBytes(register, measured)) throw new EvidenceRefused('event_log')
  return readFacts(runtime)
}

/**
 * Computes an event's digest from its payload; digest and pre-image in the log must agree with it.
 * @throws EvidenceRefused `event_log` when they do not
 */
async function eventDigest(event: DstackEvent): Promise<Bytes> {
  const preimage = PREIMAGES[event.version](event)
  const digest = await sha384(preimage)
  const agrees =
    (event.digest === '' || event.digest === toHex(digest)) &&
    (event.preimage === undefined || event.preimage === toHex(preimage))
  if (!agrees) throw new EvidenceRefused('event_log')
  return digest
}

/** The pre-image of an event's digest, by the version of the log (dstack, `cc-eventlog`). */
const PREIMAGES: Readonly<Record<DstackEvent['version'], (event: DstackEvent) => Bytes>> = {
  /** The type in four bytes, the name and the payload, separated by colons. */
  1({ type, name, payload }) {
    const typeBytes = new Uint8Array(4)
    new DataView(typeBytes.buffer).setUint32(0, type, true)
    const colon = utf8(':')
    return concatBytes(typeBytes, colon, utf8(name), colon, payload)
  },
  /** Canonical JSON (RFC 8785) of the three. */
  2: ({ type, name, payload }) => utf8(canonicalJson({ name, payload: toHex(payload), type })),
}

function readFacts(events: readonly DstackEvent[]): BootFacts {
  const end = events.findIndex(({ name }) => BOOT_ENDS.has(name))
  const boot = end === -1 ? events : events.slice(0, end)
  // Where the end of boot is not measured, the workload's own events are included here.
  if (boot.some(isAmbiguous)) throw new EvidenceRefused('event_log')
  const fact = (wanted: string): string | undefined => {
    const [found, ...more] = boot.filter(({ name }) => name === wanted)
    if (more.length > 0) throw new EvidenceRefused('event_log')
    return found && toHex(found.payload)
  }
  const composeHash = fact('compose-hash')
  if (composeHash === undefined) throw new EvidenceRefused('event_log')
  return {
    composeHash,
    osImageHash: fact('os-image-hash'),
    appId: fact('app-id'),
    instanceId: fact('instance-id'),
    keyProvider: textOf(events.find(({ name }) => name === 'key-provider')),
  }
}

/**
 * In version 1 a colon separates name and payload. If the name contains another colon, a shorter name with a longer
 * payload has the same digest, so a measured event could be presented under another name. No event of boot has a colon
 * in its name.
 */
function isAmbiguous({ name, version }: DstackEvent): boolean {
  return version === 1 && name.includes(':')
}

function textOf(event: DstackEvent | undefined): string | undefined {
  try {
    return event && fromUtf8(event.payload)
  } catch {
    return undefined
  }
}
