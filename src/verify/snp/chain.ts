import { equalBytes, toHex, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { firstFault, judge, type Check } from '../check.ts'
import { readAuthority } from '../x509/authority.ts'
import { readCertificate, type Certificate } from '../x509/certificate.ts'
import { readPem, type PemBlock } from '../x509/pem.ts'
import { pssFault } from '../x509/pss-signature.ts'
import { keyKind } from '../x509/public-key.ts'
import { SIMULATED_ARK_NAME, type Anchor, type SimulatedPolicy } from './anchors.ts'
import { AMD_NAMES, PRODUCTS, type Product } from './product.ts'
import { checkRevocation } from './revocation.ts'
import { readVekExtensions, type VekClaims, type VekKind } from './vek-extensions.ts'

/** A chain of three certificates with the names that AMD uses for one product. */
export interface VekChain {
  readonly vek: Certificate
  readonly ask: Certificate
  readonly ark: Certificate
  readonly product: Product
  readonly kind: VekKind
  readonly arkSpkiSha256: string
  readonly simulated: boolean
}

export interface ChainOptions {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly anchors: readonly Anchor[]
  readonly simulated: SimulatedPolicy
  readonly revocation: RevocationOptions
}

/** How AMD's revocation list is used. Where there is none and none is required, no check is made. */
export interface RevocationOptions {
  /** The list of the chain's root in DER. */
  readonly crl?: Bytes | undefined
  /** When the list must be valid, in milliseconds since 1970; by default the time of the chain. */
  readonly crlNow?: number | undefined
  /** Fails a chain without a list. */
  readonly requireCrl?: boolean | undefined
}

export interface ChainResult {
  readonly checks: readonly Check[]
  /** Absent where the certificates do not form a chain. */
  readonly chain?: VekChain
  /** Absent where the extensions of the chip certificate are not trustworthy. */
  readonly claims?: VekClaims
  /** When the first certificate or the revocation list expires, in milliseconds since 1970; absent when `chain` is. */
  readonly endsAt?: number
}

/**
 * Checks a PEM chain VEK, ASK (or ASVK), ARK: names, root, signatures, dates, roles, keys, revocation, and extensions.
 * @throws MalformedEvidence when a certificate cannot be parsed
 */
export async function checkChain(chainPem: string, options: ChainOptions): Promise<ChainResult> {
  const chain = await readChain(chainPem)
  if (typeof chain === 'string') return { checks: [judge('certificate_chain', chain, '')] }
  const { vek, ask, ark } = chain
  const names = [vek, ask, ark].map(({ subjectName }) => subjectName).join(' < ')
  const checks = [
    judge('certificate_chain', undefined, names),
    checkRoot(chain, options),
    judge('ark_signature', await pssFault(ark, ark.spki), ark.subjectName),
    judge('ask_signature', await pssFault(ask, ark.spki), ask.subjectName),
    judge('vek_signature', await pssFault(vek, ask.spki), vek.subjectName),
    checkValidity([vek, ask, ark], options.now),
    judge('certificate_roles', roleFault(chain), 'two authorities, one chip key'),
    judge('certificate_keys', keyFault(chain), 'RSA-4096, RSA-4096, P-384'),
  ]
  const { checks: revocation, until } = await checkAgainstList(chain, options)
  checks.push(...revocation)
  const endsAt = Math.min(until, ...[vek, ask, ark].map(({ notAfter }) => notAfter))
  try {
    const claims = readVekExtensions(vek, chain.product, chain.kind)
    const subject = claims.cspId ?? toHex(claims.hwid?.slice(0, 8) ?? new Uint8Array())
    checks.push(judge('vek_extensions', undefined, `${chain.kind} of ${subject}`))
    return { checks, chain, claims, endsAt }
  } catch (error) {
    if (!(error instanceof MalformedEvidence)) throw error
    return { checks: [...checks, judge('vek_extensions', error.reason, '')], chain, endsAt }
  }
}

/** Checks revocation. Makes no check where there is no list and none is required. */
async function checkAgainstList(
  chain: VekChain,
  { now, revocation: { crl, crlNow = now, requireCrl } }: ChainOptions,
): Promise<{ readonly checks: readonly Check[]; readonly until: number }> {
  if (crl === undefined && requireCrl !== true) return { checks: [], until: Infinity }
  const { check, until = Infinity } = await checkRevocation(chain, crl, crlNow)
  return { checks: [check], until }
}

/**
 * Identifies a PEM chain only by its names, or says what is wrong with them: nothing is verified yet.
 * @throws MalformedEvidence when a certificate cannot be parsed
 */
export async function readChain(chainPem: string): Promise<VekChain | string> {
  return identifyChain(readPem(chainPem).map(readNamedCertificate))
}

/** Reads a certificate. A comment above it must be its name, because a wrong one would mislead a reader of the file. */
function readNamedCertificate({ der, comment }: PemBlock): Certificate {
  const certificate = readCertificate(der)
  if (comment !== undefined && comment !== certificate.subjectName) {
    throw new MalformedEvidence('PEM', 'a comment that is not the name of the certificate')
  }
  return certificate
}

/** Finds product and kind of key from the names, or says what is wrong. */
async function identifyChain(certificates: readonly Certificate[]): Promise<VekChain | string> {
  const [vek, ask, ark, ...rest] = certificates
  if (vek === undefined || ask === undefined || ark === undefined || rest.length > 0) {
    return `${certificates.length} certificates instead of VEK, ASK, ARK`
  }
  const linked =
    equalBytes(vek.issuer, ask.subject) &&
    equalBytes(ask.issuer, ark.subject) &&
    equalBytes(ark.issuer, ark.subject)
  if (!linked) return 'the certificates do not issue one another in the order VEK, ASK, ARK'
  const kind = vek.subjectName === 'SEV-VLEK' ? 'vlek' : 'vcek'
  const prefix = kind === 'vlek' ? 'SEV-VLEK-' : 'SEV-'
  const product = PRODUCTS.find((one) => ask.subjectName === prefix + AMD_NAMES[one])
  if (product === undefined || vek.subjectName !== `SEV-${kind.toUpperCase()}`) {
    return 'the names are not those of a VCEK or VLEK and its authority'
  }
  const simulated = ark.subjectName === SIMULATED_ARK_NAME
  if (!simulated && ark.subjectName !== `ARK-${AMD_NAMES[product]}`) {
    return 'the root is not of the same product as the authority'
  }
  return { vek, ask, ark, product, kind, simulated, arkSpkiSha256: await sha256Hex(ark.spki) }
}

function checkRoot(chain: VekChain, { anchors, simulated }: ChainOptions): Check {
  const { product, arkSpkiSha256, ark } = chain
  if (chain.simulated) {
    const allowed =
      simulated === 'any' ||
      (typeof simulated === 'object' && simulated.arkSpkiSha256 === arkSpkiSha256)
    return judge(
      'simulated_platform',
      allowed ? undefined : `a simulated platform, and its root ${arkSpkiSha256} is not allowed`,
      `allowed, root ${arkSpkiSha256}`,
    )
  }
  const pinned = anchors.some(
    (anchor) => anchor.product === product && anchor.spkiSha256 === arkSpkiSha256,
  )
  const fault = pinned ? undefined : `${ark.subjectName} has the unknown key ${arkSpkiSha256}`
  return judge('ark_pinned', fault, `${ark.subjectName} ${arkSpkiSha256}`)
}

function checkValidity(certificates: readonly Certificate[], now: number): Check {
  const outside = certificates.find(({ notBefore, notAfter }) => now < notBefore || now > notAfter)
  const ends = Math.min(...certificates.map(({ notAfter }) => notAfter))
  const fault =
    outside &&
    `${outside.subjectName} is ${now < outside.notBefore ? 'not yet valid' : 'expired'}: ` +
      `${new Date(outside.notBefore).toISOString()} to ${new Date(outside.notAfter).toISOString()}`
  return judge('certificate_validity', fault, `until ${new Date(ends).toISOString()}`)
}

function roleFault({ vek, ask, ark }: VekChain): string | undefined {
  const [root, authority, leaf] = [ark, ask, vek].map(readAuthority)
  return firstFault(
    !(root?.ca && root.certSign) && 'the ARK may not issue certificates',
    !(authority?.ca && authority.certSign) && 'the ASK may not issue certificates',
    authority?.pathLength !== 0 && 'the ASK may issue authorities',
    leaf?.ca && 'the chip key may issue certificates',
  )
}

function keyFault({ vek, ask, ark }: VekChain): string | undefined {
  const [root, authority, leaf] = [ark, ask, vek].map(({ spki }) => keyKind(spki))
  return firstFault(
    root !== 'RSA-4096' && `the ARK is ${root} instead of RSA-4096`,
    authority !== 'RSA-4096' && `the ASK is ${authority} instead of RSA-4096`,
    leaf !== 'P-384' && `the chip key is ${leaf} instead of P-384`,
  )
}
