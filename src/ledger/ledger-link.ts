import type { IncomingMessage, ServerResponse } from 'node:http'
import { startLinkServer, type LinkServer } from '../enclave/link/server.ts'
import { readBody } from '../enclave/read-body.ts'
import type { LinkServerPlan } from '../protocol/boot.ts'
import { LEDGER_PATHS } from '../protocol/ledger-link.ts'
import type { Ledger } from './ledger.ts'
import type { ThreadAnswer } from './ledger-thread.ts'

/** Beyond what any worker sends at once (`MAX_BATCH_CHARACTERS`, or one settlement with all its evidence). */
const MAX_BODY_BYTES = 64 * 1024 * 1024

const EMPTY_BATCHES = new TextEncoder().encode('{"texts":[],"batches":[]}')

/** Serves a ledger to the workers of this host (src/protocol/ledger-link.ts). */
export function serveLedger(ledger: Ledger, link: LinkServerPlan): Promise<LinkServer> {
  const calls = new Map<string, (request: IncomingMessage) => Promise<ThreadAnswer>>([
    [LEDGER_PATHS.write, async (request) => ledger.write(await readBody(request, MAX_BODY_BYTES))],
    [
      LEDGER_PATHS.operate,
      async (request) => ledger.operate(await readBody(request, MAX_BODY_BYTES)),
    ],
    [LEDGER_PATHS.read, async (request) => ledger.read(await readBody(request, MAX_BODY_BYTES))],
    [LEDGER_PATHS.health, () => ledger.write(EMPTY_BATCHES)],
  ])
  return startLinkServer(link, (request, response) => {
    const call = calls.get(request.url ?? '')
    if (call === undefined) return end(response, 404)
    call(request).then(
      (answer) => (answer === null ? end(response, 400) : end(response, 200, answer)),
      // The worker has gone, or its body is too large.
      () => end(response, 400),
    )
  })
}

function end(response: ServerResponse, status: number, body?: Uint8Array): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body?.length ?? 0,
  })
  response.end(body)
}
