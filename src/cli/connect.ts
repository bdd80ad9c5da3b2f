import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Argument, Command } from 'commander'
import { defaultStatePath } from '../client/node/bundle-state.ts'
import { staysPrivate } from '../protocol/loopback.ts'
import { namesUser } from '../protocol/url-user.ts'
import { ConnectError } from './connect/connect-error.ts'
import { SettingsFile } from './connect/settings-file.ts'
import { environmentLines, TOOLS } from './connect/tools.ts'
import { explainer } from './failure.ts'
import type { Subcommand } from './subcommand.ts'

interface ConnectOptions {
  readonly proxy: string
  readonly model: readonly string[]
  readonly yes?: boolean
}

const explain = explainer({ told: [ConnectError] })

/** `connect <tool>`: configures a tool to use the loopback proxy; shows the change before making it. */
export function connectSubcommand(): Subcommand {
  const command = new Command('connect')
    .description('Has a tool use the loopback proxy: edits its settings, after showing the change.')
    .addArgument(new Argument('<tool>').choices([...Object.keys(TOOLS), 'env']))
    .option(
      '--proxy <url>',
      'where the proxy listens, on this machine or https',
      'http://127.0.0.1:8790',
    )
    .option('--model <name>', 'the model to use; repeatable where a tool keeps a list', collect, [])
    .option('--yes', 'make the change without asking')
    .addHelpText('after', '\nenv prints lines for a shell: eval "$(cmr connect env)"')
    .action(connect)
  return { command, explain }
}

/** `disconnect <tool>`: restores the settings, byte for byte. */
export function disconnectSubcommand(): Subcommand {
  const command = new Command('disconnect')
    .description('Makes the settings of a connected tool what they were before, byte for byte.')
    .addArgument(new Argument('<tool>').choices(Object.keys(TOOLS)))
    .option('--force', 'even where the file was changed since')
    .action((tool: string, { force = false }: { force?: boolean }) => {
      const file = fileOf(tool)
      file.restore(force)
      console.log(`${tool} is disconnected: ${file.path} is what it was`)
    })
  return { command, explain }
}

async function connect(tool: string, { model: models, proxy, yes }: ConnectOptions): Promise<void> {
  const connection = { proxy: proxyOrigin(proxy), models }
  if (tool === 'env') {
    console.log(environmentLines(connection).join('\n'))
    return
  }
  const file = fileOf(tool)
  if (file.connected) throw new ConnectError(`${tool} is connected already: disconnect it first`)
  const before = file.read()
  const after = TOOLS[tool]?.edit(before, connection) ?? before
  console.log([file.path, ...changedLines(before, after)].join('\n'))
  if (yes !== true && !(await confirmed())) throw new ConnectError('nothing was changed')
  file.change(after)
  console.log(`${tool} is connected; "disconnect ${tool}" undoes it`)
}

/**
 * The origin of the proxy, which normally listens on loopback. Any other address must be https: over plain HTTP, anyone
 * on the network could read and change prompts and answers.
 */
function proxyOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ConnectError(`${text} is no address of the proxy, such as http://127.0.0.1:8790`)
  }
  const { origin, pathname } = url
  if (namesUser(url)) {
    throw new ConnectError(
      'leave user name and password out of the address of the proxy, which asks for none',
    )
  }
  if (!staysPrivate(url)) {
    throw new ConnectError(
      `prompts would go to ${origin} in the clear: give the address of the proxy on this machine, or https`,
    )
  }
  if (!/^\/(v1\/?)?$/.test(pathname)) {
    throw new ConnectError(`the address of the proxy has a path: give ${origin} alone`)
  }
  return origin
}

function fileOf(tool: string): SettingsFile {
  const path = TOOLS[tool]?.file(homedir(), process.env) ?? ''
  return new SettingsFile(tool, path, join(dirname(defaultStatePath(process.env)), 'connected'))
}

/** The removed and added lines; the edits never move lines. */
function changedLines(before: string, after: string): string[] {
  const [old, made] = [before.split('\n'), after.split('\n')]
  const [kept, left] = [new Set(made), new Set(old)]
  return [
    ...old.filter((line) => !kept.has(line)).map((line) => `- ${line}`),
    ...made.filter((line) => !left.has(line)).map((line) => `+ ${line}`),
  ]
}

async function confirmed(): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return /^y(es)?$/i.test((await terminal.question('Make this change? [y/N] ')).trim())
  } finally {
    terminal.close()
  }
}

function collect(name: string, before: readonly string[]): string[] {
  return [...before, name]
}
