import { Command } from 'commander'
import { checkRuntime } from '../host/stack/runtime-check.ts'
import { assertPortFree } from '../host/stack/free-port.ts'
import { LOCAL_FILE } from '../host/stack/local-file.ts'
import { readRouterConfig } from '../host/stack/router-config.ts'
import { readSettings } from '../host/stack/settings.ts'
import { Stack } from '../host/stack/stack.ts'
import { StartError } from '../host/stack/start-error.ts'
import { openStateDir } from '../host/stack/state-dir.ts'
import { endingExplainer, explainer } from './failure.ts'
import type { Subcommand } from './subcommand.ts'

const FAILING = { told: [StartError] }

/**
 * `start`: the whole router on this machine, in the foreground. SIGINT, SIGTERM and SIGHUP end it with status 0;
 * SIGUSR2 makes it read its configuration again.
 */
export function startSubcommand(): Subcommand {
  const command = new Command('start')
    .description(
      'Run a whole router on this machine. Settings: see README, "Settings of npm start".',
    )
    .action(async () => {
      await start()
      process.exit(0)
    })
  return { command, explain: endingExplainer(FAILING) }
}

async function start(): Promise<void> {
  checkRuntime()
  const settings = readSettings(process.env)
  const config = readRouterConfig(settings.configPath)
  const state = openStateDir(settings.stateDir)
  state.remove(LOCAL_FILE)
  await assertPortFree('PORT', settings.port)
  await assertPortFree('TLS_PORT', settings.tlsPort)

  const stack = await Stack.create({ settings, state, config, log: console.log })
  // npm repeats the Ctrl-C that the terminal has already sent to all processes: a second signal must have no effect.
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, resolve)
  })
  process.on('SIGUSR2', () => reload(stack, settings.configPath))
  try {
    await Promise.race([stopped, stack.failed, stack.start().then(() => stopped)])
  } finally {
    console.log('  stopping')
    await stack.stop()
  }
}

function reload(stack: Stack, path: string): void {
  try {
    stack.reload(readRouterConfig(path))
  } catch (error) {
    explainer(FAILING)(error, [])
  }
}
