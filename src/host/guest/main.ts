import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { CHIP_FILE_VARIABLE } from '../../enclave/open-machine.ts'
import { claimsGuestMemory, describeTables, readTables } from './acpi-tables.ts'
import { forward } from './forward.ts'
import { checkConfiguration, HostInputError } from './host-input.ts'
import { OPEN_PORT, planService, type StandinPlan } from './service-plan.ts'

/** The program whose subcommand the guest runs. */
const PROGRAM = '/app/src/cli/main.ts'

const STANDIN = '/app/src/standin/main.js'
const RUN_AS = '/usr/bin/run-as'

const CONFIG = '/run/cmr/config'
const SECRETS = '/run/cmr/secrets'
/** A simulated chip, for rehearsals; the real platform does not read it. */
const CHIP = '/run/cmr/simulated-chip'
const STANDIN_PLAN = '/run/cmr/standin'
const TABLES = '/run/cmr/acpi'
const IOMEM = '/run/cmr/iomem'

/**
 * The program that PID 1 starts: checks the host's input and runs the router. When the router exits, the machine stops.
 */
async function main(): Promise<number> {
  const configuration = readFileSync(CONFIG)
  checkConfiguration(configuration, readFileSync('/proc/cmdline', 'utf8'))
  checkTables()
  const plan = planService(configuration.toString('utf8'), {
    secrets: readIfThere(SECRETS),
    standin: readIfThere(STANDIN_PLAN),
  })
  if (plan.standin !== undefined) startStandinProvider(plan.standin)
  if (plan.forwardTo !== undefined) await forward(OPEN_PORT, plan.forwardTo)

  const router = spawn(process.execPath, [PROGRAM, ...plan.args], {
    cwd: '/app',
    stdio: ['ignore', plan.shown ? 'inherit' : 'ignore', 'inherit'],
    env: {
      ...plan.env,
      PATH: '/usr/bin',
      HOME: '/tmp',
      TMPDIR: '/tmp',
      NODE_ENV: 'production',
      // PID 1 stops the machine when the router exits, whatever other processes are left.
      CMR_UNGUARDED: '1',
      CMR_RUN_AS: RUN_AS,
      ...(existsSync(CHIP) ? { [CHIP_FILE_VARIABLE]: CHIP } : {}),
      ROUTER_CONFIG: CONFIG,
      STATE_DIR: '/var/lib/cmr',
    },
  })
  process.on('SIGTERM', () => router.kill('SIGTERM'))
  return new Promise((resolve, reject) => {
    router.once('error', reject)
    router.once('exit', (code) => resolve(code ?? 1))
  })
}

/** @throws HostInputError when an ACPI table claims memory of this guest */
function checkTables(): void {
  const tables = readTables(TABLES)
  say(describeTables(tables))
  if (claimsGuestMemory(tables, readFileSync(IOMEM, 'utf8'))) {
    throw new HostInputError('an ACPI table of the host claims memory of this guest')
  }
}

/**
 * Starts the image's own stand-in provider, for rehearsals. Its answers are made up, and it stops with the machine. Its
 * evidence is that of the simulated chip that the host handed over, where there is one.
 */
function startStandinProvider({ port, tlsPort, identity }: StandinPlan): void {
  say({ event: 'standin_provider' })
  const args = ['worker', process.execPath, STANDIN, String(port), String(tlsPort)]
  const standin = spawn(RUN_AS, args, {
    cwd: '/app',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { PATH: '/usr/bin', HOME: '/tmp', TMPDIR: '/tmp', STANDIN_IDENTITY: identity },
  })
  const chip = readIfThere(CHIP)
  if (chip !== undefined) standin.send({ type: 'chip', chip: JSON.parse(chip) }, () => {})
}

/** Writes one line to the console, which the host can read. */
function say(event: { readonly event: string; readonly reason?: string }): void {
  process.stdout.write(`${JSON.stringify({ at: new Date().toISOString(), ...event })}\n`)
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
    say({
      event: 'guest_refused',
      reason: error instanceof HostInputError ? error.message : 'an unexpected error',
    })
    process.exit(1)
  },
)
