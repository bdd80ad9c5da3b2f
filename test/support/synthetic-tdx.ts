import { concatBytes, copyBytes, toHex, utf8, type Bytes } from '../../src/protocol/bytes.ts'
import {
  CPU_SVN,
  FMSPC,
  PCE_SVN,
  sha256Of,
  signRaw,
  type SyntheticIntel,
} from './synthetic-intel.ts'

/** The parts of a TDX guest's report that tests set; 48 bytes each but where said. */
export interface GuestFields {
  readonly mrTd?: Bytes
  readonly mrConfigId?: Bytes
  readonly rtMr?: readonly [Bytes, Bytes, Bytes, Bytes]
  /** 64 bytes. */
  readonly reportData?: Bytes
  /** 8 bytes; SEPT_VE_DISABLE alone unless given. */
  readonly attributes?: Bytes
  /** 8 bytes; what Linux guests have unless given. */
  readonly xfam?: Bytes
  /** 16 bytes; module version 01 at its newest level unless given. */
  readonly teeTcbSvn?: Bytes
  readonly mrSignerSeam?: Bytes
  /** 8 bytes; zero unless given. */
  readonly seamAttributes?: Bytes
}

/** TEE_TCB_SVN of a module of this version and security version, on a platform at its newest level. */
export function teeTcbSvn(version: number, svn: number): Bytes {
  return Uint8Array.of(svn, version, TDX_SVN, ...new Uint8Array(13))
}

const TDX_SVN = 3
/** Of the two versions that the synthetic Intel knows. */
const NEWEST_SVN = 5

/** MRSEAM of the synthetic module. */
export const MR_SEAM = '5e'.repeat(48)
const QE_MR_SIGNER = new Uint8Array(32).fill(0xdc)
const QE_SVN = 8

export const register = (fill: number): Bytes => new Uint8Array(48).fill(fill)

/** A TDX quote of version 4, signed by the synthetic platform. */
export async function makeQuote(intel: SyntheticIntel, guest: GuestFields): Promise<Bytes> {
  const signed = concatBytes(header(), guestReport(guest))
  const scheme = { name: 'ECDSA', namedCurve: 'P-256' }
  const attestation = await crypto.subtle.generateKey(scheme, true, ['sign', 'verify'])
  const raw = await crypto.subtle.exportKey('raw', attestation.publicKey)
  const attestationKey = new Uint8Array(raw).slice(1)
  const authData = utf8('0123456789abcdef0123456789abcdef')
  const qeReport = quotingEnclaveReport(sha256Of(attestationKey, authData))
  const chain = utf8(intel.chipChainPem)
  const certification = concatBytes(
    qeReport,
    await signRaw(intel.chipKey, qeReport),
    u16(authData.length),
    authData,
    u16(5),
    u32(chain.length),
    chain,
  )
  const auth = concatBytes(
    await signRaw(attestation.privateKey, signed),
    attestationKey,
    u16(6),
    u32(certification.length),
    certification,
  )
  return concatBytes(signed, u32(auth.length), auth)
}

/** 48 bytes: version 4, ECDSA P-256, TDX. */
function header(): Bytes {
  return concatBytes(u16(4), u16(2), u32(0x81), new Uint8Array(40))
}

/** 584 bytes: TDREPORT of version 1.0. */
function guestReport(guest: GuestFields): Bytes {
  const zero = new Uint8Array(48)
  const { rtMr = [zero, zero, zero, zero] } = guest
  return concatBytes(
    guest.teeTcbSvn ?? teeTcbSvn(1, NEWEST_SVN),
    register(0x5e),
    guest.mrSignerSeam ?? zero,
    guest.seamAttributes ?? new Uint8Array(8),
    guest.attributes ?? Uint8Array.of(0, 0, 0, 0x10, 0, 0, 0, 0),
    guest.xfam ?? Uint8Array.of(0xe7, 0x02, 0x06, 0, 0, 0, 0, 0),
    guest.mrTd ?? zero,
    guest.mrConfigId ?? zero,
    zero,
    zero,
    ...rtMr,
    guest.reportData ?? new Uint8Array(64),
  )
}

/** 384 bytes: the SGX report of the quoting enclave. */
function quotingEnclaveReport(digest: Bytes): Bytes {
  const report = new Uint8Array(384)
  report.set(QE_MR_SIGNER, 128)
  report.set(u16(2), 256)
  report.set(u16(QE_SVN), 258)
  report.set(digest, 320)
  return report
}

function u16(value: number): Bytes {
  return Uint8Array.of(value & 0xff, value >> 8)
}

function u32(value: number): Bytes {
  return copyBytes(new Uint8Array(Uint32Array.of(value).buffer))
}

/** What Intel's provisioning service answers about the synthetic platform, by address. */
export type PcsAnswers = ReadonlyMap<string, { body: Bytes; headers: Record<string, string> }>

export interface PcsOptions {
  readonly now: number
  /** What Intel says of the platform's level. */
  readonly tcbStatus?: string
  /** Raises every listed level above the platform's. */
  readonly aboveThePlatform?: boolean
  readonly quotingEnclaveStatus?: string
  /** What Intel says of the newest level of TDX module 01. */
  readonly moduleStatus?: string
  readonly advisoryIds?: readonly string[]
  readonly tcbEvaluationDataNumber?: number
  /** Changes the finished TCB info before it is signed. */
  readonly tcbInfo?: (info: Record<string, unknown>) => object
  /** When TCB info and enclave identity are due to be replaced, ms; in an hour unless given. */
  readonly tcbInfoEnds?: number
  readonly enclaveIdentityEnds?: number
}

const PCS = 'https://api.trustedservices.intel.com'

const chain = (name: string, pem: string) => ({ [name]: encodeURIComponent(pem) })

export async function answerAsIntel(
  intel: SyntheticIntel,
  options: PcsOptions,
): Promise<PcsAnswers> {
  const identity = await signedMember(intel, 'enclaveIdentity', enclaveIdentity(options))
  const { tcbInfo: change = (info) => info } = options
  const tcb = await signedMember(intel, 'tcbInfo', change(tcbInfo(options)))
  return new Map([
    [
      `${PCS}/sgx/certification/v4/pckcrl?ca=platform&encoding=der`,
      { body: intel.chipList, headers: chain('SGX-PCK-CRL-Issuer-Chain', intel.authorityChainPem) },
    ],
    [
      `${PCS}/tdx/certification/v4/tcb?fmspc=${FMSPC}`,
      { body: tcb, headers: chain('TCB-Info-Issuer-Chain', intel.signingChainPem) },
    ],
    [
      `${PCS}/tdx/certification/v4/qe/identity`,
      {
        body: identity,
        headers: chain('SGX-Enclave-Identity-Issuer-Chain', intel.signingChainPem),
      },
    ],
    [
      'https://certificates.trustedservices.intel.com/IntelSGXRootCA.der',
      { body: intel.rootList, headers: {} },
    ],
  ])
}

async function signedMember(intel: SyntheticIntel, name: string, value: object): Promise<Bytes> {
  const text = JSON.stringify(value)
  const signature = toHex(await signRaw(intel.signingKey, text))
  return utf8(`{"${name}":${text},"signature":"${signature}"}`)
}

const iso = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`

function dates(now: number, end = now + 3_600_000) {
  return { issueDate: iso(now - 3_600_000), nextUpdate: iso(end) }
}

function tcbInfo(options: PcsOptions) {
  const { tcbStatus = 'UpToDate', aboveThePlatform = false } = options
  const needed = aboveThePlatform ? CPU_SVN + 1 : CPU_SVN
  return {
    id: 'TDX',
    version: 3,
    ...dates(options.now, options.tcbInfoEnds),
    fmspc: FMSPC,
    pceId: '0000',
    tcbType: 0,
    tcbEvaluationDataNumber: options.tcbEvaluationDataNumber ?? 17,
    tdxModule: MODULE,
    tdxModuleIdentities: [
      { id: 'TDX_03', ...MODULE, tcbLevels: [moduleLevel(2, 'UpToDate')] },
      {
        id: 'TDX_01',
        ...MODULE,
        tcbLevels: [
          moduleLevel(NEWEST_SVN, options.moduleStatus ?? 'UpToDate'),
          moduleLevel(2, 'OutOfDate', ['INTEL-SA-01036']),
        ],
      },
    ],
    tcbLevels: [
      {
        tcb: {
          sgxtcbcomponents: Array.from({ length: 16 }, () => ({ svn: needed })),
          pcesvn: PCE_SVN,
          tdxtcbcomponents: [...teeTcbSvn(0, NEWEST_SVN)].map((svn) => ({ svn })),
        },
        tcbDate: '2025-01-01T00:00:00Z',
        tcbStatus,
        advisoryIDs: options.advisoryIds ?? [],
      },
    ],
  }
}

const MODULE = {
  mrsigner: '00'.repeat(48),
  attributes: '00'.repeat(8),
  attributesMask: 'FF'.repeat(8),
}

function moduleLevel(isvsvn: number, tcbStatus: string, advisoryIDs: readonly string[] = []) {
  return { tcb: { isvsvn }, tcbDate: '2025-01-01T00:00:00Z', tcbStatus, advisoryIDs }
}

function enclaveIdentity(options: PcsOptions) {
  return {
    id: 'TD_QE',
    version: 2,
    ...dates(options.now, options.enclaveIdentityEnds),
    tcbEvaluationDataNumber: 17,
    miscselect: '00000000',
    miscselectMask: 'FFFFFFFF',
    attributes: '00'.repeat(16),
    attributesMask: 'FF'.repeat(16),
    mrsigner: toHex(QE_MR_SIGNER).toUpperCase(),
    isvprodid: 2,
    tcbLevels: [
      {
        tcb: { isvsvn: QE_SVN },
        tcbDate: '2025-01-01T00:00:00Z',
        tcbStatus: options.quotingEnclaveStatus ?? 'UpToDate',
      },
    ],
  }
}

/** A `fetch` that reaches nothing but these answers. */
export function fetchFrom(answers: PcsAnswers): typeof fetch {
  return async (input, init) => {
    const { url } = new Request(input, init)
    const found = answers.get(url)
    if (found === undefined) throw new Error(`nobody answers ${url}`)
    return new Response(found.body, { headers: found.headers })
  }
}
