import { Command, InvalidArgumentError, Option } from 'commander'
import { toHex } from '../../protocol/bytes.ts'
import { KEY_CONFIG_PATH } from '../../protocol/ehbp.ts'
import { isLoopbackHost } from '../../protocol/loopback.ts'
import { judge, verdict } from '../../verify/check.ts'
import {
  verifyEnvelope,
  type EnvelopeOptions,
  type LiveExpectations,
} from '../../verify/envelope.ts'
import { readEnvelope } from '../../verify/envelope-hardware.ts'
import { headline } from '../../verify/headline.ts'
import { readServedHpkeKey } from '../../verify/served-hpke-key.ts'
import { checkLogged } from '../../verify/transparency/check-logged.ts'
import { readLogPolicy, type LogPolicy } from '../../verify/transparency/log-policy.ts'
import { TransparencyError } from '../../verify/transparency/transparency-error.ts'
import { defaultStatePath } from '../../client/node/bundle-state.ts'
import { obtainBundle, type PublishedTrust } from './accepted-bundle.ts'
import { InputError } from './input-error.ts'
import { localOption, readLocalStack } from './local-stack.ts'
import { report, type Outcome } from './print.ts'
import { readInput, readJson } from './read-input.ts'
import { readRoot } from './release-trust.ts'
import { createRouterClient, type Answer, type FleetClient } from './router-client.ts'

interface AttestationOptions {
  readonly rootKey: string
  readonly nonce?: string
  readonly cached?: boolean
  readonly crl?: string
  readonly requireCrl?: boolean
  readonly allowSimulated?: boolean
  readonly acceptBeforeRevocation?: boolean
  readonly environment?: string
  readonly state: string
  readonly logPolicy?: string
  readonly json?: boolean
}

/** The options as given: `--local` may replace the root key. */
type GivenOptions = Omit<AttestationOptions, 'rootKey'> & {
  readonly rootKey?: string
  readonly local?: boolean
}

/** `verify attestation <base_url> --root-key <file>` */
export function attestationCommand(): Command {
  return new Command('attestation')
    .description('Verifies a running router: its enclave, its release, and the connection to it.')
    .argument('[base_url]', 'address of the router')
    .option('--root-key <file>', "the release root's public JWK")
    .addOption(localOption())
    .option('--nonce <hex>', 'ask for a report for this nonce (default: a random one)', parseNonce)
    .addOption(
      new Option(
        '--cached',
        "take the router's cached report; freshness then rests on the operator's clock",
      ).conflicts('nonce'),
    )
    .option('--crl <file>', "AMD's revocation list in DER (default: the one in the envelope)")
    .option('--require-crl', "fail without AMD's revocation list")
    .option(
      '--accept-before-revocation',
      'accept what is revoked only since a moment that is yet to come',
    )
    .option('--allow-simulated', 'accept a simulated platform, which proves nothing')
    .option('--environment <name>', 'the environment it must be for (default: production)')
    .option('--state <file|none>', 'remembers the last good bundle', defaultStatePath(process.env))
    .option('--log-policy <file>', 'the public log of releases that must have bundle and manifest')
    .option('--json', 'print JSON')
    .action(async (address: string | undefined, options: GivenOptions) => {
      const request = completed(address, options)
      report(await verifyRouter(request.address, request.options), options.json === true)
    })
}

/** `--local` fills in the other required options. */
function completed(
  address: string | undefined,
  given: GivenOptions,
): { readonly address: string; readonly options: AttestationOptions } {
  const local = given.local === true ? readLocalStack(process.env) : undefined
  const base = address ?? local?.tlsBaseUrl
  const rootKey = given.rootKey ?? local?.rootKey
  if (base === undefined || rootKey === undefined) {
    throw new InputError(
      "give <base_url> and --root-key <file>, or --local for this machine's npm start",
    )
  }
  const allowSimulated = given.allowSimulated === true || local !== undefined
  return { address: base, options: { ...given, rootKey, allowSimulated } }
}

const PROVEN = 'this connection ends in a verified router enclave that runs an accepted release'
const NOT_CHECKED_HERE = 'there is a verified router enclave that runs an accepted release'

async function verifyRouter(address: string, options: AttestationOptions): Promise<Outcome> {
  const client = createRouterClient(address, 'evidence')
  const rootJwk = await readRoot(options.rootKey)
  const trusted = await obtainBundle(client, rootJwk, options)
  if (trusted.bundle === undefined) {
    const notes = ['the envelope was not judged: its trust bundle is refused']
    return { ...trusted, notes, summary: headline(trusted, { proven: PROVEN }) }
  }
  const nonce = options.cached === true ? null : (options.nonce ?? randomNonce())
  const { answer, hpkeKey } = await fetchEvidence(client, nonce)
  const envelope = readEnvelope(answer.body)
  const connection = judgeConnection(client.base, answer)
  const { hpkeKeyConfigSha256, notes: unserved } = await readServedHpkeKey(hpkeKey)
  const result = await verifyEnvelope(envelope, {
    ...(await envelopePolicy(options)),
    trust: {
      bundle: trusted.bundle,
      rootJwk,
      acceptBeforeRevocation: options.acceptBeforeRevocation,
    },
    live: { ...connection.live, nonce, hpkeKeyConfigSha256 },
  })
  const logged = await judgeLogged(envelope.workload_identity_manifest_jws, trusted, options)
  const judged = verdict([
    ...trusted.checks,
    ...result.checks,
    ...logged.checks,
    ...connection.checks,
  ])
  const simulated = result.chain?.simulated === true && options.allowSimulated === true
  const cached = nonce === null ? ["Freshness rests on the operator's clock."] : []
  const unproven = connection.notes.length > 0 ? ['Plain HTTP: where it ends is not proven.'] : []
  const proven = unproven.length > 0 ? NOT_CHECKED_HERE : PROVEN
  const summary = headline(judged, { proven, simulated, caveats: [...cached, ...unproven] })
  return {
    ...judged,
    summary,
    notes: [...result.notes, ...(logged.notes ?? []), ...connection.notes, ...unserved],
  }
}

async function envelopePolicy(
  options: AttestationOptions,
): Promise<Pick<EnvelopeOptions, 'now' | 'simulated' | 'crl' | 'requireCrl'>> {
  return {
    now: Date.now(),
    simulated: options.allowSimulated === true ? 'any' : 'refuse',
    crl: options.crl === undefined ? undefined : await readInput(options.crl),
    requireCrl: options.requireCrl,
  }
}

/** Fetches the attestation envelope and the HPKE key configuration from the same host. */
async function fetchEvidence(
  client: FleetClient,
  nonce: string | null,
): Promise<{ readonly answer: Answer; readonly hpkeKey: Answer }> {
  const path = `/attestation${nonce === null ? '' : `?nonce=${nonce}`}`
  const [answer, hpkeKey] = await client.getTogether(path, KEY_CONFIG_PATH)
  if (answer?.status === 200 && hpkeKey !== undefined) return { answer, hpkeKey }
  const reason =
    answer?.status === 429
      ? ': too many were asked for from this address; try again in a minute'
      : ''
  throw new InputError(`${client.base.origin}/attestation answers ${answer?.status}${reason}`)
}

/**
 * Checks the log proofs. Returns no checks without a policy; if the policy does not require the log, the checks become
 * notes.
 */
async function judgeLogged(
  manifestJws: string,
  { jws: trustBundleJws = '', logProofs }: PublishedTrust,
  { logPolicy }: AttestationOptions,
): Promise<Pick<Outcome, 'checks' | 'notes'>> {
  if (logPolicy === undefined) return { checks: [], notes: [] }
  const policy = await readPolicy(logPolicy)
  const { checks } = checkLogged({ trustBundleJws, manifestJws }, logProofs, policy, Date.now())
  if (policy.required) return { checks, notes: [] }
  return { checks: [], notes: checks.map(({ name, detail }) => `${name}: ${detail}`) }
}

async function readPolicy(path: string): Promise<LogPolicy> {
  try {
    return readLogPolicy(await readJson(path))
  } catch (cause) {
    if (cause instanceof TransparencyError)
      throw new InputError(`${path}: ${cause.message}`, { cause })
    throw cause
  }
}

interface Connection {
  readonly live: Omit<LiveExpectations, 'nonce'>
  readonly checks: Outcome['checks']
  readonly notes: readonly string[]
}

/**
 * The TLS key of the connection. Plain HTTP cannot be bound to an enclave: a failed check, but on loopback only a note.
 */
function judgeConnection(base: URL, { tlsSpkiSha256 }: Answer): Connection {
  if (tlsSpkiSha256 !== undefined) return { live: { tlsSpkiSha256 }, checks: [], notes: [] }
  const fault = 'plain HTTP: nothing tells where the connection ends'
  if (isLoopbackHost(base.hostname)) return { live: {}, checks: [], notes: [`tls_key: ${fault}`] }
  return { live: {}, checks: [judge('tls_key', fault, '')], notes: [] }
}

function randomNonce(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(32)))
}

function parseNonce(text: string): string {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new InvalidArgumentError('64 lowercase hex digits.')
  return text
}
