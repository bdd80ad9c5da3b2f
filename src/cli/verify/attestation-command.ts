import { Command, InvalidArgumentError } from 'commander'
import { toHex } from '../../protocol/bytes.ts'
import { es256JwkSchema } from '../../protocol/jwk.ts'
import { isLoopbackHost } from '../../protocol/loopback.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { judge, verdict } from '../../verify/check.ts'
import { verifyEnvelope, type LiveExpectations } from '../../verify/envelope.ts'
import { readEnvelope } from '../../verify/envelope-hardware.ts'
import { fetchTrustBundle } from '../../verify/fetch-trust-bundle.ts'
import { verifyTrustBundle, type TrustBundleResult } from '../../verify/trust-bundle.ts'
import { defaultStatePath, readSeen, writeSeen } from './bundle-state.ts'
import { acceptedEnvironments } from './environments.ts'
import { InputError } from './input-error.ts'
import { report, type Outcome } from './print.ts'
import { readJson } from './read-input.ts'
import { createRouterClient, type Answer, type RouterClient } from './router-client.ts'

interface AttestationOptions {
  readonly rootKey: string
  readonly nonce?: string | true
  readonly allowSimulated?: boolean
  readonly environment?: string
  readonly state: string
  readonly json?: boolean
}

/** `verify attestation <base_url> --root-key <file>` */
export function attestationCommand(): Command {
  return new Command('attestation')
    .description('Verifies a running router: its enclave, its release, and the connection to it.')
    .argument('<base_url>', 'address of the router')
    .requiredOption('--root-key <file>', "the release root's public JWK")
    .option('--nonce [hex]', 'ask for a report made now, for this or a random nonce', parseNonce)
    .option('--allow-simulated', 'accept a simulated platform, which proves nothing')
    .option('--environment <name>', 'the environment it must be for (default: production)')
    .option('--state <file|none>', 'remembers the last good bundle', defaultStatePath(process.env))
    .option('--json', 'print JSON')
    .action(async (address: string, options: AttestationOptions) => {
      report(await verifyRouter(address, options), options.json === true)
    })
}

async function verifyRouter(address: string, options: AttestationOptions): Promise<Outcome> {
  const client = createRouterClient(address, 'evidence')
  const rootJwk = readDocument(es256JwkSchema, await readJson(options.rootKey), 'release root key')
  const trust = await obtainBundle(client, rootJwk, options)
  if (trust.bundle === undefined) {
    return { ...trust, notes: ['the envelope was not judged: its trust bundle is refused'] }
  }
  const nonce = options.nonce === true ? randomNonce() : options.nonce
  const answer = await client.get(`/attestation${nonce === undefined ? '' : `?nonce=${nonce}`}`)
  if (answer.status !== 200) {
    throw new InputError(`${client.base.origin}/attestation answers ${answer.status}`)
  }
  const connection = judgeConnection(client.base, answer)
  const result = await verifyEnvelope(readEnvelope(answer.body), {
    now: Date.now(),
    simulated: options.allowSimulated === true ? 'any' : 'refuse',
    trust: { bundle: trust.bundle, rootJwk },
    live: { ...connection.live, nonce },
  })
  const checks = [...trust.checks, ...result.checks, ...connection.checks]
  return { ...verdict(checks), notes: connection.notes }
}

async function obtainBundle(
  client: RouterClient,
  rootJwk: unknown,
  options: AttestationOptions,
): Promise<TrustBundleResult> {
  const fetched = await fetchTrustBundle(
    `${client.base.origin}/.well-known/trust.json`,
    client.base.origin,
    async (input) => asResponse(await client.get(pathOf(input))),
  )
  if (fetched.jws === undefined) return fetched
  const result = await verifyTrustBundle(fetched.jws, rootJwk, {
    now: Date.now(),
    environments: acceptedEnvironments(options.environment, options.allowSimulated),
    lastSeen: await readSeen(options.state, rootJwk),
  })
  if (result.seen !== undefined) await writeSeen(options.state, result.seen)
  return { ...result, checks: [...fetched.checks, ...result.checks] }
}

function pathOf(input: string | URL | Request): string {
  return new URL(input instanceof Request ? input.url : input).pathname
}

function asResponse({ status, body }: Answer): Response {
  return new Response(status === 204 || status === 304 ? null : new Uint8Array(body), { status })
}

interface Connection {
  readonly live: LiveExpectations
  readonly checks: Outcome['checks']
  readonly notes: readonly string[]
}

/** Plain HTTP is no connection into an enclave; on this machine's own loopback that is told and no more. */
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
