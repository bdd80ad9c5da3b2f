import { Command, Option } from 'commander'
import { z } from 'zod'
import { sha256Hex } from '../../protocol/digest.ts'
import { es256JwkSchema, type Es256Jwk } from '../../protocol/jwk.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { verifyReceipt, type ExpectedExchange } from '../../verify/receipt.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import { acceptedEnvironments } from './environments.ts'
import { fetchEvidence, readEvidenceFiles, type EvidenceMap } from './evidence-source.ts'
import { InputError } from './input-error.ts'
import { parseNow } from './parse-now.ts'
import { report } from './print.ts'
import { readInput, readJson, readText } from './read-input.ts'
import { responseDigest } from './response-digest.ts'
import { createRouterClient, type RouterClient } from './router-client.ts'

interface ReceiptCommandOptions {
  readonly baseUrl?: string
  readonly jwks?: string
  readonly request?: string
  readonly response?: string
  readonly providerRequest?: string
  readonly providerResponse?: string
  readonly requestedRoute?: string
  readonly routedModel?: string
  readonly requireProvider?: boolean
  readonly rootKey?: string
  readonly providerRootKey?: string
  readonly evidence: readonly string[]
  readonly allowSimulated?: boolean
  readonly environment?: string
  readonly now?: number
  readonly json?: boolean
}

/** `verify receipt <file|-> --base-url <url> | --jwks <file>` */
export function receiptCommand(): Command {
  return new Command('receipt')
    .description('Verifies a receipt: who signed it, what it is about, and where it was made.')
    .argument('<file>', 'the receipt as the router answers it, or its JWS; - for standard input')
    .addOption(
      new Option('--base-url <url>', 'the router, for keys and evidence').conflicts('jwks'),
    )
    .option('--jwks <file>', "the router's key set, without asking the router")
    .option('--request <file>', 'the body that the client sent')
    .option('--response <file>', 'the body that the client got, a stream included')
    .option('--provider-request <file>', 'the body that went to the provider')
    .option('--provider-response <file>', 'the body that came from the provider')
    .option('--requested-route <route>', 'the route it must say was asked for')
    .option('--routed-model <route>', 'the route it must say was used')
    .option('--require-provider', 'fail where the provider was not attested')
    .option('--root-key <file>', "the router's release root (public JWK)")
    .option('--provider-root-key <file>', "the provider's release root (public JWK)")
    .option(
      '--evidence <file>',
      'evidence that the receipt names by digest; may repeat',
      collect,
      [],
    )
    .option('--allow-simulated', 'accept a simulated platform, which proves nothing')
    .option('--environment <name>', 'the environment it must be of (default: production)')
    .option('--now <time>', 'judge as of this time (RFC 3339)', parseNow)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nCMR_API_KEY: the key that may read the evidence of a provider.')
    .action(verifyReceiptFile)
}

async function verifyReceiptFile(file: string, options: ReceiptCommandOptions): Promise<void> {
  const { id, receipt } = readReceipt(await readText(file))
  const { jwks, evidence } = await obtainKeys(receipt, options)
  const result = await verifyReceipt(receipt, {
    now: options.now ?? Date.now(),
    jwks,
    evidence,
    expected: { id, ...(await expectations(options)) },
    simulated: simulatedPolicy(options),
    environments: acceptedEnvironments(options.environment, options.allowSimulated),
    routerRoot: await readRoot(options.rootKey),
    providerRoot: await readRoot(options.providerRootKey),
    requireProvider: options.requireProvider === true,
  })
  report(result, options.json === true)
}

/**
 * Whoever names a release root asks what stands behind the router, and a simulated platform fails. Without one
 * only the exchange is judged, and a simulated platform is told.
 */
function simulatedPolicy(options: ReceiptCommandOptions): SimulatedPolicy {
  const { allowSimulated, rootKey, providerRootKey } = options
  const strict = rootKey !== undefined || providerRootKey !== undefined
  return strict && allowSimulated !== true ? 'refuse' : 'any'
}

const answerSchema = z.object({ id: z.string(), receipt: z.string() })

/** The whole answer of the router, or only the JWS in it. */
function readReceipt(text: string): { id: string | undefined; receipt: string } {
  const trimmed = text.trim()
  if (!trimmed.startsWith('{')) return { id: undefined, receipt: trimmed }
  return readDocument(answerSchema, parseStrictJson(trimmed, 'receipt file'), 'receipt file')
}

async function obtainKeys(
  receipt: string,
  options: ReceiptCommandOptions,
): Promise<{ jwks: unknown; evidence: EvidenceMap }> {
  const given = await readEvidenceFiles(options.evidence)
  if (options.jwks !== undefined) return { jwks: await readJson(options.jwks), evidence: given }
  if (options.baseUrl === undefined) throw new InputError('give --base-url or --jwks')
  const client = createRouterClient(options.baseUrl, 'authorities')
  const jwks = await fetchKeySet(client)
  const fetched = await fetchEvidence(client, receipt, process.env['CMR_API_KEY'])
  return { jwks, evidence: new Map([...fetched, ...given]) }
}

async function fetchKeySet(client: RouterClient): Promise<unknown> {
  const { status, body } = await client.get('/.well-known/jwks.json')
  if (status !== 200) throw new InputError(`${client.base.origin} answers ${status} for its keys`)
  return parseStrictJson(body, 'JWKS')
}

async function expectations(options: ReceiptCommandOptions): Promise<ExpectedExchange> {
  const { response } = options
  return {
    requestedRoute: options.requestedRoute,
    routedModel: options.routedModel,
    clientRequestSha256: await digestOf(options.request),
    clientResponseSha256:
      response === undefined ? undefined : await responseDigest(await readInput(response)),
    providerRequestSha256: await digestOf(options.providerRequest),
    providerResponseSha256: await digestOf(options.providerResponse),
  }
}

async function digestOf(path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : sha256Hex(await readInput(path))
}

async function readRoot(path: string | undefined): Promise<Es256Jwk | undefined> {
  if (path === undefined) return undefined
  return readDocument(es256JwkSchema, await readJson(path), 'release root key')
}

function collect(path: string, before: readonly string[]): string[] {
  return [...before, path]
}
