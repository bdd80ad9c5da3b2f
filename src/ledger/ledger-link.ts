import type { LinkServer } from '../enclave/link-server/server.ts'
import type { LinkServerPlan } from '../protocol/boot.ts'
import { LEDGER_PATHS } from '../protocol/ledger-link.ts'
import type { Ledger } from './ledger.ts'
import { startLedgerServer } from './ledger-server.ts'
import type { LedgerAnswer } from './reader.ts'

const LIMITS = {
  /** Longer than a worker waits for any answer, ms. */
  handshakeMs: 60_000,
  /** More than any worker sends at once (`MAX_BATCH_CHARACTERS`, or one settlement with all its evidence). */
  maxBodyBytes: 64 * 1024 * 1024,
}

const NOTHING = new Uint8Array()

/**
 * Serves a ledger to the workers of this host (src/protocol/ledger-link.ts).
 * @param process the id of this process; another one after each start
 */
export function serveLedger(
  ledger: Ledger,
  link: LinkServerPlan,
  process: string,
): Promise<LinkServer> {
  const calls = new Map<string, (body: Uint8Array) => Promise<LedgerAnswer>>([
    [LEDGER_PATHS.write, (body) => ledger.write(body)],
    [LEDGER_PATHS.operate, (body) => ledger.operate(body)],
    [LEDGER_PATHS.read, (body) => ledger.read(body)],
    [LEDGER_PATHS.lookUp, (body) => ledger.lookUp(body)],
    [LEDGER_PATHS.health, () => ledger.check().then(() => NOTHING)],
  ])
  return startLedgerServer(link, { process, ...LIMITS }, async (path, body) => {
    const call = calls.get(path)
    if (call === undefined) return { status: 404, body: NOTHING }
    const answer = await call(body)
    return answer === null ? { status: 400, body: NOTHING } : { status: 200, body: answer }
  })
}
