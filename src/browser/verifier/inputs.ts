import { fromBase64, type Bytes } from '../../protocol/bytes.ts'
import { es256JwkSchema, type Es256Jwk } from '../../protocol/jwk.ts'
import { providerPolicySchema } from '../../protocol/provider-policy.ts'
import { publishedTrustBundleSchema } from '../../protocol/trust-bundle.ts'
import { readLogPolicy } from '../../verify/transparency/log-policy.ts'
import type { UserFile } from '../parts/user-file.ts'
import type { ReceiptInput } from './judge-receipt.ts'
import type { Requirements } from './judge-router.ts'

/** The state of the form: only text and base64, so that it can be restored after a reload. */
export interface Inputs {
  readonly router: string
  readonly rootKey: string
  readonly environment: string
  readonly allowSimulated: boolean
  readonly requireCrl: boolean
  readonly crl: UserFile | undefined
  readonly logPolicy: UserFile | undefined
  readonly receipt: string
  readonly receiptId: string
  readonly apiKey: string
  readonly evidence: readonly UserFile[]
  readonly keys: UserFile | undefined
  readonly bundle: UserFile | undefined
  readonly request: UserFile | undefined
  readonly response: UserFile | undefined
  readonly providerPolicy: string
}

export const NO_INPUTS: Inputs = {
  router: '',
  rootKey: '',
  environment: 'production',
  allowSimulated: false,
  requireCrl: false,
  crl: undefined,
  logPolicy: undefined,
  receipt: '',
  receiptId: '',
  apiKey: '',
  evidence: [],
  keys: undefined,
  bundle: undefined,
  request: undefined,
  response: undefined,
  providerPolicy: '',
}

/** An input of the form is invalid; the message says why. */
export class InputFault extends Error {
  /** The invalid input. */
  readonly input: keyof Inputs

  constructor(input: keyof Inputs, message: string) {
    super(message)
    this.name = 'InputFault'
    this.input = input
  }
}

/** @throws InputFault when something cannot be used */
export function readRequirements(inputs: Inputs): Requirements {
  const environment = inputs.environment.trim()
  if (environment === '') throw new InputFault('environment', 'Give the environment.')
  const local = inputs.allowSimulated && environment === 'production' ? ['local'] : []
  return {
    rootJwk: readRoot(inputs.rootKey),
    environments: [environment, ...local],
    allowSimulated: inputs.allowSimulated,
    requireCrl: inputs.requireCrl,
    crl: bytesOf(inputs.crl),
    logPolicy: logPolicyOf(inputs.logPolicy),
  }
}

/** @throws InputFault when something cannot be used */
export function readReceiptInput(inputs: Inputs): ReceiptInput {
  return {
    text: inputs.receipt.trim(),
    id: inputs.receiptId.trim(),
    apiKey: inputs.apiKey.trim(),
    evidence: inputs.evidence.map(({ base64 }) => fromBase64(base64)),
    jwks: inputs.keys && json('keys', textOf(inputs.keys)),
    bundles: inputs.bundle === undefined ? [] : [bundleOf(textOf(inputs.bundle))],
    request: bytesOf(inputs.request),
    response: bytesOf(inputs.response),
    providerPolicy: policyOf(inputs),
  }
}

/** @throws InputFault when it is not a release root */
export function readRoot(text: string): Es256Jwk {
  if (text.trim() === '') {
    throw new InputFault('rootKey', 'Give the release root: everything is proven under it.')
  }
  const root = es256JwkSchema.safeParse(json('rootKey', text))
  if (root.success) return root.data
  throw new InputFault('rootKey', 'This is not a public ES256 key in JWK form.')
}

/** A file with only a release root stands for the default policy of the adapter `envelope` with that root. */
function policyOf({ providerPolicy, environment }: Inputs): ReceiptInput['providerPolicy'] {
  if (providerPolicy.trim() === '') return undefined
  const given = json('providerPolicy', providerPolicy)
  const root = es256JwkSchema.safeParse(given)
  const document = root.success
    ? { adapter: 'envelope', root_key: root.data, environments: [environment.trim()] }
    : given
  const policy = providerPolicySchema.safeParse(document)
  if (policy.success && policy.data.adapter !== 'none') return policy.data
  const [issue] = policy.error?.issues ?? []
  const where =
    issue === undefined ? 'it demands nothing' : `${issue.path.join('.')}: ${issue.message}`
  throw new InputFault('providerPolicy', `The provider policy cannot be used: ${where}.`)
}

function bundleOf(text: string): string {
  if (!text.startsWith('{')) return text
  const published = publishedTrustBundleSchema.safeParse(json('bundle', text))
  if (published.success) return published.data.trust_bundle_jws
  throw new InputFault('bundle', 'This is not a trust bundle.')
}

function logPolicyOf(file: UserFile | undefined): Requirements['logPolicy'] {
  if (file === undefined) return undefined
  const document = json('logPolicy', textOf(file))
  try {
    return readLogPolicy(document)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'not readable'
    throw new InputFault('logPolicy', `The log policy cannot be used: ${why}`)
  }
}

function json(input: keyof Inputs, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new InputFault(input, 'This is not JSON.')
  }
}

const bytesOf = (file: UserFile | undefined): Bytes | undefined => file && fromBase64(file.base64)

export const textOf = ({ base64 }: UserFile): string =>
  new TextDecoder().decode(fromBase64(base64)).trim()
