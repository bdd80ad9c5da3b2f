import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command, CommanderError } from 'commander'
import { z } from 'zod'
import { PROJECT_DIR } from '../host/stack/settings.ts'
import { HeldSignals } from './held-signals.ts'
import type { Output } from './output.ts'
import { EXIT_UNUSABLE, type Subcommand } from './subcommand.ts'

interface Entry {
  readonly description: string
  readonly load: () => Promise<Subcommand>
}

const COMMANDS: Readonly<Record<string, Entry>> = {
  start: {
    description: 'run a whole router on this machine, for trying it out',
    load: async () => (await import('./start.ts')).startSubcommand(),
  },
  serve: {
    description: 'serve in production mode',
    async load() {
      // First, before any slow import: a supervisor may send SIGHUP as soon as the process exists.
      const signals = new HeldSignals(process, ['SIGHUP', 'SIGUSR2'])
      return (await import('./serve.ts')).serveSubcommand(signals)
    },
  },
  admin: {
    description: 'customers, keys and credit of a running router',
    load: async () => (await import('./admin.ts')).adminSubcommand(),
  },
  verify: {
    description: 'verify attestation, receipts, SNP reports and trust bundles',
    load: async () => (await import('./verify.ts')).verifySubcommand(),
  },
  provider: {
    description: 'attested providers: is what the configuration demands proven',
    load: async () => (await import('./provider.ts')).providerSubcommand(),
  },
  proxy: {
    description: 'a proven way to a router for every program of this machine',
    load: async () => (await import('./proxy.ts')).proxySubcommand(),
  },
  unseal: {
    description: 'give a sealed router its secrets, after it has proven itself',
    load: async () => (await import('./unseal.ts')).unsealSubcommand(),
  },
  connect: {
    description: 'make codex, claude or opencode use the proxy, or print variables for a shell',
    load: async () => (await import('./connect.ts')).connectSubcommand(),
  },
  disconnect: {
    description: 'restore the settings of such a tool',
    load: async () => (await import('./connect.ts')).disconnectSubcommand(),
  },
  release: {
    description: 'keys, manifests and trust bundles of a release, offline',
    load: async () => (await import('./release.ts')).releaseSubcommand(),
  },
  image: {
    description: 'build the image of the confidential guest, from a checkout',
    load: async () => (await import('./image.ts')).imageSubcommand(),
  },
}

/**
 * Runs `confidential-model-router` with the arguments that follow its name, and sets `process.exitCode`.
 * @param output reports lost output, which makes the command fail
 * @throws Error when a command fails with an error that its `explain` does not handle
 */
export async function runProgram(
  words: readonly string[],
  output?: Pick<Output, 'fault'>,
): Promise<void> {
  const requested = (words[0] === 'help' ? words[1] : words[0]) ?? ''
  const subcommand = Object.hasOwn(COMMANDS, requested)
    ? await COMMANDS[requested]?.load()
    : undefined
  const program = new Command('confidential-model-router')
    .description(
      'One OpenAI-format API in front of attested model providers, with signed receipts.',
    )
    .version(readVersion())
    // Subcommands have options of the same name as the program, such as `release manifest --version`.
    .enablePositionalOptions()
    .showHelpAfterError()
  for (const [name, { description }] of Object.entries(COMMANDS)) {
    if (name === requested && subcommand !== undefined) program.addCommand(subcommand.command)
    else program.command(name).description(description)
  }
  throwForUsage(program)
  try {
    // For `help <unknown>`, commander would print the help of the whole program, as if that had been requested. Without
    // the word `help`, it reports an unknown command.
    const asked = words[0] === 'help' && subcommand === undefined ? words.slice(1) : words
    await program.parseAsync([...asked], { from: 'user' })
    const lost = await output?.fault()
    if (lost !== undefined) throw lost
  } catch (error) {
    process.exitCode = exitStatus(error, subcommand, words)
  }
}

const packageSchema = z.object({ version: z.string() })

/** The version of the checkout, or of the installed package. */
function readVersion(): string {
  const text = readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8')
  return packageSchema.parse(JSON.parse(text)).version
}

/** The value that was given to an unknown option, as in `--token=…`, may be a secret: only the option is printed. */
const UNKNOWN_WITH_VALUE = /^(error: unknown option '[^=]+)=.*'/s

/** Makes the command and all its subcommands throw, instead of exiting, for help and for usage errors. */
function throwForUsage(command: Command): void {
  command.exitOverride().configureOutput({
    outputError: (text, write) => write(text.replace(UNKNOWN_WITH_VALUE, "$1'")),
  })
  for (const below of command.commands) throwForUsage(below)
}

function exitStatus(
  error: unknown,
  subcommand: Subcommand | undefined,
  words: readonly string[],
): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_UNUSABLE
  if (subcommand === undefined) throw error
  return subcommand.explain(error, words)
}
