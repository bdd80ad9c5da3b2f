import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { forward } from './forward.ts'
import { checkConfiguration, HandedOverError, readSecrets } from './handed-over.ts'

/** What the guest runs. */
const ENTRY = ['/app/src/cli/main.ts', 'start']

const CONFIG = '/run/cmr/config'
const SECRETS = '/run/cmr/secrets'

/** The guest's one open port, and where the router has TLS. Plain HTTP stays inside. */
const OPEN_PORT = 443
const TLS_PORT = 8788
const HTTP_PORT = 8787
const CONNECTIONS_PER_SOURCE = 1_024

/**
 * The program PID 1 starts: checks what the host handed over, opens the port and runs the router. It ends when the
 * router ends, and the machine with it.
 */
async function main(): Promise<number> {
  const configuration = readFileSync(CONFIG)
  checkConfiguration(configuration, readFileSync('/proc/cmdline', 'utf8'))
  const secrets = readSecrets(readIfThere(SECRETS), configuration.toString('utf8'))
  await forward(OPEN_PORT, TLS_PORT)

  const router = spawn(process.execPath, ENTRY, {
    cwd: '/app',
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...secrets,
      ...(secrets['DATABASE_URL'] === undefined ? {} : { STORAGE: 'postgres' }),
      PATH: '/usr/bin',
      HOME: '/tmp',
      TMPDIR: '/tmp',
      NODE_ENV: 'production',
      // PID 1 ends the machine with the router, whatever is left of it.
      CMR_UNGUARDED: '1',
      ROUTER_CONFIG: CONFIG,
      STATE_DIR: '/var/lib/cmr',
      PORT: String(HTTP_PORT),
      TLS_PORT: String(TLS_PORT),
      CONNECTIONS_PER_SOURCE: String(CONNECTIONS_PER_SOURCE),
    },
  })
  process.on('SIGTERM', () => router.kill('SIGTERM'))
  return new Promise((resolve, reject) => {
    router.once('error', reject)
    router.once('exit', (code) => resolve(code ?? 1))
  })
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => {
    console.error(error instanceof HandedOverError ? `guest: ${error.message}` : error)
    process.exit(1)
  },
)
