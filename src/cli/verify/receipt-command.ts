import { Command, Option } from 'commander'
import type { ProviderPolicy } from '../../protocol/provider-policy.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { receiptHeadline } from '../../verify/headline.ts'
import { releaseRootPolicy } from '../../verify/providers/envelope.ts'
import { providerJudge } from '../../verify/providers/provider-judge.ts'
import type { JudgeProviderHop } from '../../verify/receipt-provider.ts'
import { readReceiptText } from '../../verify/receipt-text.ts'
import { verifyReceipt, type ReceiptOptions, type ReceiptOutcome } from '../../verify/receipt.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import { defaultStatePath, writeAcceptedBundle } from '../../client/node/bundle-state.ts'
import { verifySigstoreBundle } from '../../enclave/provenance/verify-bundle.ts'
import { acceptedEnvironments } from './environments.ts'
import { addExpectations, expectations, type ExpectationOptions } from './expectations.ts'
import { fetchEvidence, readEvidenceFiles, type EvidenceMap } from './evidence-source.ts'
import { InputError } from './input-error.ts'
import { localOption, readLocalReceipt, readLocalStack } from './local-stack.ts'
import { parseNow } from './parse-now.ts'
import { report } from './print.ts'
import { readPolicy } from './provider-policy.ts'
import { readInput, readJson, readText } from './read-input.ts'
import { asRoot, newestUnder, obtainTrust, readRoot } from './release-trust.ts'
import { createRouterClient, type RouterClient } from './router-client.ts'

interface ReceiptCommandOptions extends ExpectationOptions {
  readonly baseUrl?: string
  readonly jwks?: string
  readonly requireProvider?: boolean
  readonly rootKey?: string
  readonly signatureOnly?: boolean
  readonly providerRootKey?: string
  readonly providerPolicy?: string
  readonly bundle?: string
  readonly state: string
  readonly acceptBeforeRevocation?: boolean
  readonly crl?: string
  readonly requireCrl?: boolean
  readonly evidence: readonly string[]
  readonly allowSimulated?: boolean
  readonly environment?: string
  readonly now?: number
  readonly json?: boolean
  readonly local?: boolean
  /** The id of the requested receipt, when it comes from the router and not from a file. */
  readonly wantedId?: string | undefined
  /**
   * For the local router: the release root of its attested provider, and the API key that may read the evidence of
   * receipts.
   */
  readonly providerRootJwk?: unknown
  readonly apiKey?: string
}

/** `verify receipt <file|-> --root-key <file> --base-url <url> | --jwks <file>` */
export function receiptCommand(): Command {
  const command = new Command('receipt')
    .description('Verifies a receipt: who signed it, what it is about, and where it was made.')
    .argument(
      '[file]',
      'the receipt as the router answers it, or its JWS; - for standard input; with --local an id, or the latest one',
    )
    .addOption(localOption())
    .option('--root-key <file>', "the router's release root (public JWK)")
    .addOption(
      new Option('--signature-only', 'ask nothing about the machine; exits 3 at best').conflicts(
        'rootKey',
      ),
    )
  addSources(command)
  addExpectations(command)
  return addPolicy(command)
    .option('--now <time>', 'judge as of this time (RFC 3339)', parseNow)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
CMR_API_KEY: the key that may read the evidence of a provider; it is sent over https or to this machine alone.
Exits 0 where the receipt is valid, 1 where a check failed, 2 where the command or its input cannot be used,
3 where --signature-only was given and the signature holds.`,
    )
    .action((file: string | undefined, options: ReceiptCommandOptions) =>
      options.local === true ? verifyLocal(file, options) : verifyGiven(file, options),
    )
}

function addSources(command: Command): void {
  command
    .addOption(
      new Option('--base-url <url>', 'the router, for keys, evidence and bundle').conflicts('jwks'),
    )
    .option('--jwks <file>', "the router's key set, without asking the router")
    .option('--evidence <file>', 'evidence that the receipt names; may repeat', collect, [])
    .option('--bundle <file>', 'a newer trust bundle, for what it revokes')
    .option('--state <file|none>', 'remembers the newest bundle', defaultStatePath(process.env))
    .option('--crl <file>', "AMD's revocation list of today in DER")
}

function addPolicy(command: Command): Command {
  return command
    .option('--provider-root-key <file>', "the provider's release root, to judge its envelope by")
    .addOption(
      new Option(
        '--provider-policy <file>',
        "what you demand of the provider: JSON, as a provider's `attestation` in the configuration",
      ).conflicts('providerRootKey'),
    )
    .option('--require-provider', 'fail where the provider was not judged again and attested')
    .option('--require-crl', "fail without AMD's revocation list")
    .option(
      '--accept-before-revocation',
      'accept what is revoked only since after the time that the receipt itself states',
    )
    .option('--allow-simulated', 'accept a simulated platform, which proves nothing')
    .option('--environment <name>', 'the environment it must be of (default: production)')
}

const EXIT_CODES: Readonly<Record<ReceiptOutcome, number>> = {
  valid: 0,
  not_valid: 1,
  signature_only: 3,
}

function verifyGiven(file: string | undefined, options: ReceiptCommandOptions): Promise<void> {
  if (file === undefined) throw new InputError('give the receipt, or --local for the latest one')
  return readText(file).then((text) => verifyText(text, options))
}

/** Verifies with the local router's own root and that of its attested provider. */
async function verifyLocal(
  wanted: string | undefined,
  options: ReceiptCommandOptions,
): Promise<void> {
  const local = readLocalStack(process.env)
  const isId = wanted === undefined || /^[0-9a-f-]{36}$/.test(wanted)
  const text = isId ? await readLocalReceipt(local, wanted) : await readText(wanted)
  await verifyText(text, {
    ...options,
    ...local,
    wantedId: isId ? wanted : undefined,
    baseUrl: options.baseUrl ?? local.baseUrl,
    rootKey: options.rootKey ?? local.rootKey,
    allowSimulated: true,
  })
}

async function verifyText(text: string, options: ReceiptCommandOptions): Promise<void> {
  if (options.rootKey === undefined && options.signatureOnly !== true) {
    throw new InputError(
      'give --root-key, for without it nothing is proven about the machine; or ask for --signature-only',
    )
  }
  const { id, receipt } = readReceiptText(text)
  const client = routerClient(options)
  const { jwks, evidence } = await obtainKeys(receipt, options, client)
  const router = await routerTrust(options, client)
  const result = await verifyReceipt(receipt, {
    now: options.now ?? Date.now(),
    jwks,
    evidence,
    expected: { id: options.wantedId ?? id, ...(await expectations(options)) },
    router,
    simulated: simulatedPolicy(options),
    crl: options.crl === undefined ? undefined : await readInput(options.crl),
    requireCrl: options.requireCrl,
    judgeProviderHop: await judgeOfProvider(options, router),
    requireProvider: options.requireProvider === true,
  })
  if (result.accepted !== undefined) await writeAcceptedBundle(options.state, result.accepted)
  const exitCode = EXIT_CODES[result.outcome]
  const summary = receiptHeadline(result)
  const isLocal = options.local === true
  report({ ...result, summary, exitCode, isLocal }, options.json === true)
}

async function routerTrust(
  options: ReceiptCommandOptions,
  client: RouterClient | undefined,
): Promise<ReceiptOptions['router']> {
  const { rootKey } = options
  return rootKey === undefined ? 'signature_only' : obtainTrust({ ...options, rootKey }, client)
}

function simulatedPolicy({ allowSimulated }: ReceiptCommandOptions): SimulatedPolicy {
  return allowSimulated === true ? 'any' : 'refuse'
}

/** The function that verifies the provider's hop, if the caller gave a policy or a release root for it. */
async function judgeOfProvider(
  options: ReceiptCommandOptions,
  router: ReceiptOptions['router'],
): Promise<JudgeProviderHop | undefined> {
  const policy = await policyOfProvider(options)
  if (policy === undefined) return undefined
  const environments = options.allowSimulated === true ? ['local'] : []
  const simulated = simulatedPolicy(options)
  if (policy.adapter !== 'envelope') {
    const verifyProvenance = verifySigstoreBundle
    return providerJudge(policy, { simulated, environments, verifyProvenance })
  }
  const newest = await newestUnder(asRoot(policy.root_key), options.state, {
    now: options.now ?? Date.now(),
    environments: [...policy.environments, ...environments],
    given: router === 'signature_only' ? [] : router.bundles,
  })
  const { acceptBeforeRevocation } = options
  return providerJudge(policy, { simulated, environments, newest, acceptBeforeRevocation })
}

async function policyOfProvider(
  options: ReceiptCommandOptions,
): Promise<ProviderPolicy | undefined> {
  const { providerRootKey, providerRootJwk, providerPolicy, environment, allowSimulated } = options
  if (providerPolicy !== undefined) return readPolicy(providerPolicy)
  if (providerRootKey === undefined && providerRootJwk === undefined) return undefined
  const rootJwk = providerRootKey ? await readRoot(providerRootKey) : asRoot(providerRootJwk)
  return releaseRootPolicy(rootJwk, {
    environments: [...acceptedEnvironments(environment, allowSimulated)],
  })
}

/**
 * With `--signature-only` no attestation is checked, so the certificate alone proves whose keys the router publishes.
 */
function routerClient({ baseUrl, signatureOnly }: ReceiptCommandOptions): RouterClient | undefined {
  const trust = signatureOnly === true ? 'authorities' : 'evidence'
  return baseUrl === undefined ? undefined : createRouterClient(baseUrl, trust)
}

async function obtainKeys(
  receipt: string,
  options: ReceiptCommandOptions,
  client: RouterClient | undefined,
): Promise<{ jwks: unknown; evidence: EvidenceMap }> {
  const given = await readEvidenceFiles(options.evidence)
  if (options.jwks !== undefined) return { jwks: await readJson(options.jwks), evidence: given }
  if (client === undefined) throw new InputError('give --base-url or --jwks')
  const jwks = await fetchKeySet(client)
  const fetched = await fetchEvidence(client, receipt, options.apiKey ?? process.env['CMR_API_KEY'])
  return { jwks, evidence: new Map([...fetched, ...given]) }
}

async function fetchKeySet(client: RouterClient): Promise<unknown> {
  const { status, body } = await client.get('/.well-known/jwks.json')
  if (status !== 200) throw new InputError(`${client.base.origin} answers ${status} for its keys`)
  return parseStrictJson(body, 'JWKS')
}

function collect(path: string, before: readonly string[]): string[] {
  return [...before, path]
}
