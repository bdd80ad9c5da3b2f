import { parentPort, workerData } from 'node:worker_threads'
import { traceError } from '../../protocol/error-trace.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import { openAdapter } from '../adapters/table.ts'
import { createEvidenceDeps } from '../evidence-deps.ts'
import { HEARTBEAT_MS, type Look, type ThreadAnswer, type ThreadData } from './messages.ts'

/** The thread of one provider: everything that provider sends as evidence is fetched, read and judged in here. */
const { stateDir, ownSimulated }: ThreadData = workerData
const deps = createEvidenceDeps({ stateDir }, ownSimulated, Date.now)
const port = parentPort

const tell = (answer: ThreadAnswer) => port?.postMessage(answer)
setInterval(() => tell({ type: 'alive' }), HEARTBEAT_MS).unref()
tell({ type: 'alive' })

port?.on('message', (look: Look) => void take(look).then(tell))

async function take({ attestation, subject, memory }: Look): Promise<ThreadAnswer> {
  try {
    const opened = openAdapter(attestation, subject, deps, memory)
    if (opened === undefined) throw new Error('internal error: nothing to look at')
    return { type: 'verified', evidence: await opened.obtain(), memory }
  } catch (error) {
    if (!(error instanceof EvidenceRefused)) return { type: 'failed', trace: traceError(error) }
    return { type: 'refused', code: error.code, checks: error.checks }
  }
}
