import { parentPort, workerData } from 'node:worker_threads'
import { traceError } from '../../protocol/error-trace.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import { openAdapter } from '../adapters/table.ts'
import { createEvidenceDeps } from '../evidence-deps.ts'
import { HEARTBEAT_MS, type VerifyRequest, type ThreadAnswer, type ThreadData } from './messages.ts'

/** The thread of one provider, in which all of its evidence is fetched, parsed and judged. */
const { stateDir, kdsWaits, ownSimulated }: ThreadData = workerData
const deps = createEvidenceDeps({ stateDir, kdsWaits }, ownSimulated, Date.now)
const port = parentPort

const send = (answer: ThreadAnswer) => port?.postMessage(answer)
setInterval(() => send({ type: 'alive' }), HEARTBEAT_MS).unref()
send({ type: 'alive' })

port?.on('message', (request: VerifyRequest) => void verify(request).then(send))

async function verify({ attestation, subject, memory }: VerifyRequest): Promise<ThreadAnswer> {
  try {
    const opened = openAdapter(attestation, subject, deps, memory)
    if (opened === undefined) throw new Error('internal error: a provider without an adapter')
    return { type: 'verified', evidence: await opened.obtain(), memory }
  } catch (error) {
    if (!(error instanceof EvidenceRefused)) return { type: 'failed', trace: traceError(error) }
    return { type: 'refused', code: error.code, checks: error.checks }
  }
}
