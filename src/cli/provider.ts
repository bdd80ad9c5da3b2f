import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Command } from 'commander'
import { createEvidenceDeps } from '../enclave/evidence-deps.ts'
import { newKdsWaits } from '../enclave/snp/kds.ts'
import { checkConfig } from '../protocol/config-rules.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { checkOnce, type CheckedProvider } from './check-provider.ts'
import { explainer } from './failure.ts'
import type { Subcommand } from './subcommand.ts'
import { InputError } from './verify/input-error.ts'
import { JUDGING, report } from './verify/print.ts'

interface CheckOptions {
  readonly config: string
  readonly stateDir?: string
  readonly json?: boolean
}

/**
 * `provider check <name>`: verifies a provider of the configuration once, without serving. Exits 0 when its evidence is
 * valid, 1 when it is not, 2 when the command or the configuration is invalid.
 */
export function providerSubcommand(): Subcommand {
  const command = new Command('provider').description('Attested providers of a configuration')
  command
    .command('check')
    .description('Asks a provider for its evidence once, judges it, and prints what it says.')
    .argument('<name>', 'the provider, as the configuration names it')
    .requiredOption('--config <file>', 'the configuration file')
    .option(
      '--state-dir <path>',
      "where AMD's certificates are kept (default: STATE_DIR or .state)",
    )
    .option('--json', 'print JSON')
    .action(check)
  const explain = explainer({ told: [InputError, MalformedEvidence], ...JUDGING })
  return { command, explain }
}

async function check(name: string, options: CheckOptions): Promise<void> {
  const stateDir = resolve(options.stateDir ?? process.env['STATE_DIR'] ?? '.state')
  const deps = createEvidenceDeps({ stateDir, kdsWaits: newKdsWaits() }, 'refuse', Date.now)
  report(await checkOnce(await readProvider(name, options.config), deps), options.json === true)
}

async function readProvider(name: string, file: string): Promise<CheckedProvider> {
  const checked = checkConfig(parseStrictJson(await readConfig(file), file))
  if (!checked.ok) {
    const problems = checked.problems.map(({ path, reason }) => `${path}: ${reason}`)
    throw new InputError(`${file}: ${problems.join('; ')}`)
  }
  const { providers, service } = checked.config
  const provider = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (provider === undefined) throw new InputError(`${file}: no provider is named "${name}"`)
  const { api_key_env: variable } = provider
  const apiKey = variable === undefined ? undefined : process.env[variable]
  if (variable !== undefined && !apiKey) {
    throw new InputError(`the environment has no variable ${variable}`)
  }
  return { name, provider, apiKey, mode: service.mode }
}

async function readConfig(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new InputError(`${file} cannot be read`, { cause })
  }
}
