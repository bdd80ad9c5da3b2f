import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { messageOfThrown } from '../protocol/thrown-message.ts'
import { readPrivateKey } from './release/files.ts'
import { ReleaseError } from './release/release-error.ts'
import { ON_SIMULATED } from '../verify/headline.ts'
import { explainer } from './failure.ts'
import type { Subcommand } from './subcommand.ts'
import { Broker } from './unseal/broker.ts'
import { readHostsFile, type Host } from './unseal/hosts-file.ts'
import { digestOfConfiguration, readSecretsFile } from './unseal/inputs.ts'
import { LedgerPositions } from './unseal/ledger-positions.ts'
import { unsealGuest, type UnsealOutcome } from './unseal/unseal-guest.ts'
import { defaultStatePath } from '../client/node/bundle-state.ts'
import { InputError } from './verify/input-error.ts'
import { readBundle } from './verify/read-input.ts'
import { JUDGING, printProblem, report, type Outcome } from './verify/print.ts'
import { readRoot } from './verify/release-trust.ts'

interface UnsealOptions {
  readonly rootKey?: string
  readonly operatorKey?: string
  readonly bundle?: string
  readonly ledgerPosition?: string
  readonly secrets?: string
  readonly configuration?: string
  readonly environment?: string
  readonly allowSimulated?: boolean
  readonly requireCrl?: boolean
  readonly state: string
  readonly watch?: string
  readonly json?: boolean
}

/**
 * `unseal`: verifies a router and gives it its secrets if it is sealed, or new ones if it serves. Exits 0 when they
 * took effect, 1 when the router was not proven or refused them, 2 when the command or its input is invalid.
 */
export function unsealSubcommand(): Subcommand {
  const command = new Command('unseal')
    .description('Give a sealed router its secrets, after it has proven itself.')
    .argument('[address]', 'https address of the router')
    .option('--root-key <file>', "the release root's public JWK")
    .option('--operator-key <file>', "the operator's private JWK, made by `release keygen`")
    .option('--secrets <file>', 'JSON object of the secrets by the name of their variable')
    .option('--configuration <file>', 'the configuration that the router must have in force')
    .option('--bundle <file>', 'your own copy of the trust bundle, in place of the published one')
    .option(
      '--ledger-position <n>',
      'of `GET /admin/ledger`, last seen: a ledger behind it was rolled back',
    )
    .option('--environment <name>', 'the environment it must be for (default: production)')
    .option('--require-crl', "fail without AMD's revocation list")
    .option('--allow-simulated', 'accept a simulated platform, which proves nothing')
    .option('--state <file|none>', 'remembers the last good bundle', defaultStatePath(process.env))
    .option('--watch <hosts.json>', 'unseal these hosts whenever they come up, without a person')
    .option('--json', 'print JSON')
    .action(async (address: string | undefined, options: UnsealOptions) => {
      if (options.watch === undefined)
        report(await unsealOnce(address, options), options.json === true)
      else await watch(options.watch)
    })
  const explain = explainer({ told: [InputError, MalformedEvidence, ReleaseError], ...JUDGING })
  return { command, explain }
}

async function unsealOnce(address: string | undefined, options: UnsealOptions): Promise<Outcome> {
  const given = {
    address: required(address, 'the address of the router'),
    rootKey: required(options.rootKey, '--root-key'),
    operatorKey: required(options.operatorKey, '--operator-key'),
    secrets: required(options.secrets, '--secrets'),
    configuration: required(options.configuration, '--configuration'),
  }
  const outcome = await unsealGuest({
    address: given.address,
    policy: {
      rootJwk: await readRoot(given.rootKey),
      bundle: options.bundle === undefined ? undefined : await readBundle(options.bundle),
      configurationSha256: await digestOfConfiguration(given.configuration),
      allowSimulated: options.allowSimulated === true,
      requireCrl: options.requireCrl === true,
      environment: options.environment,
      state: options.state,
    },
    operator: await readPrivateKey(given.operatorKey),
    secrets: await readSecretsFile(given.secrets),
    ledgerPosition: positionOf(options.ledgerPosition),
  })
  return describe(outcome)
}

function required(value: string | undefined, name: string): string {
  if (value !== undefined) return value
  throw new InputError(`${name} is missing`)
}

function positionOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const position = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(position)) return position
  throw new InputError('--ledger-position is no whole number')
}

function describe(outcome: UnsealOutcome): Outcome {
  const { checks, notes } = outcome.proof
  if (outcome.kind === 'unsealed') {
    // The summary must say so when the platform is simulated and proves nothing.
    const simulated = checks.some(({ name }) => name === 'simulated_platform')
    const summary = `UNSEALED${simulated ? ON_SIMULATED : ''}: the router proved itself and has its secrets`
    return { ok: true, summary, checks, notes }
  }
  if (outcome.kind === 'unproven') {
    const failed = checks.find(({ ok }) => !ok)
    const summary = `NOT UNSEALED: ${failed?.name ?? 'its evidence'} does not hold; nothing was sent`
    return { ok: false, summary, checks, notes }
  }
  const summary = `REFUSED BY THE ROUTER: ${outcome.reason}: ${outcome.message}`
  return { ok: false, summary, checks, notes }
}

/** Checks the hosts until stopped, printing one JSON line for each decision. */
async function watch(path: string): Promise<void> {
  const file = await readHostsFile(path)
  const broker = new Broker({
    file,
    rootJwk: await readRoot(file.root_key),
    operator: await readPrivateKey(file.operator_key),
    positions: await LedgerPositions.open(file.ledger_positions),
    log: (decision) => {
      const at = new Date().toISOString()
      process.stdout.write(`${JSON.stringify({ at, ...decision })}\n`)
    },
  })
  const hosts = followHosts(path, file.hosts)
  // The reader of the decisions must learn of every unsealing, so the broker ends when it cannot write them.
  const unheard = new Promise<never>((_resolve, reject) => process.stdout.once('error', reject))
  unheard.catch(() => {})
  for (;;) {
    // Not awaited: a host that does not answer must not delay the next check of the others.
    void broker.lookAtAll(await hosts())
    await Promise.race([delay(file.poll_seconds * 1_000), unheard])
  }
}

/**
 * Reads the hosts file again on each call, so that new guests of a fleet need no restart of the broker. Reports an
 * invalid file once and keeps the last valid list.
 */
function followHosts(path: string, first: readonly Host[]): () => Promise<readonly Host[]> {
  let [hosts, reported] = [first, '']
  return async () => {
    try {
      hosts = (await readHostsFile(path)).hosts
      reported = ''
    } catch (error) {
      const message = messageOfThrown(error)
      if (message !== reported) printProblem(message, false)
      reported = message
    }
    return hosts
  }
}
