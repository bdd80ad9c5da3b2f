import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { becomesTrue } from './stack.ts'

/** A run of `confidential-model-router proxy`. */
export interface ProxyProcess {
  /** Where it listens, without a path. */
  readonly url: string
  /** Everything it printed so far. */
  output(): string
  signal(signal: NodeJS.Signals): void
  /** Ends it and answers the exit status. */
  stop(): Promise<number | null>
}

/**
 * Starts it on a free port and waits until it has said whether the router is proven.
 * @throws Error with its output when it does not come so far
 */
export async function startProxyProcess(...flags: readonly string[]): Promise<ProxyProcess> {
  const program = join(PROJECT_DIR, 'src/cli/main.ts')
  const own = ['--port', '0', '--state', 'none']
  const child = spawn(process.execPath, [program, 'proxy', ...own, ...flags])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part: Buffer) => (output += part.toString()))
  }
  await becomesTrue(() => /is(?: not)? proven|tries again/.test(output) || child.exitCode !== null)
  const url = /proxy +(http:\S+)/.exec(output)?.[1]
  if (url === undefined) {
    child.kill('SIGKILL')
    throw new Error(`the proxy did not come up:\n${output}`)
  }
  return {
    url,
    output: () => output,
    signal: (signal) => void child.kill(signal),
    stop: async () => {
      if (child.exitCode !== null) return child.exitCode
      child.kill('SIGTERM')
      await once(child, 'close')
      return child.exitCode
    },
  }
}
