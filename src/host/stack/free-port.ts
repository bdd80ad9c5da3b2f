import { createServer } from 'node:net'
import { StartError } from './start-error.ts'

/** @throws StartError when the port is in use; 0 always succeeds */
export async function assertPortFree(variable: string, port: number): Promise<void> {
  if (port === 0) return
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const probe = createServer()
  probe.once('error', (error) => reject(refusal(variable, port, error)))
  probe.listen(port, '127.0.0.1', () => probe.close(() => resolve()))
  return promise
}

function refusal(variable: string, port: number, error: Error): StartError {
  const why = 'code' in error && error.code === 'EADDRINUSE' ? 'is in use' : 'cannot be opened'
  return new StartError(`port ${port} ${why}: set ${variable} to another one, or to 0 for any`)
}
