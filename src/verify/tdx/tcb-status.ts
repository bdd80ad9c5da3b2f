import { utils, type Quote, type Collateral, type TDReport10 } from '@phala/dcap-qvl'
import type * as z from 'zod'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { chipChain } from './chip-chain.ts'
import { requirePceId } from './pce-id.ts'
import {
  enclaveIdentitySchema,
  tcbInfoSchema,
  type EnclaveIdentity,
  type TcbInfo,
} from './tcb-info.ts'
import { judgeTdxModule, type ModuleVerdict } from './tdx-module.ts'

/** Intel's rating of a platform, from the collateral of its quote. */
export interface TcbVerdict {
  /** In Intel's notation: `UpToDate`, `OutOfDate`, `SWHardeningNeeded` and others; the worst of all parts. */
  readonly tcbStatus: string
  /** Advisories of every part that is not up to date, in order, each once. */
  readonly advisoryIds: readonly string[]
  /** Increases with every TCB recovery of Intel; identifies the version of the rating data. */
  readonly tcbEvaluationDataNumber: number
  readonly tdxModule: ModuleVerdict
  /** When the first of the rating documents is due to be replaced, in milliseconds since 1970. */
  readonly endsAt: number
}

/** ISVSVN in the report of the quoting enclave (SGX REPORT body), two bytes, little-endian. */
const ISV_SVN_OFFSET = 258

/**
 * Rates a platform like Intel's Quote Verification Library (its requirements 4.1.2.4.11, 4.1.2.4.15 and 4.1.2.4.17;
 * Intel PCS API v4, "Get TDX TCB Info"): the TDX module by its own identity, the platform by the first TCB level that
 * it reaches, the quoting enclave by its own level; the worst of the three counts. The signatures over quote and
 * collateral must have been verified before.
 * @throws EvidenceRefused `hardware` when the chip certificate, its provisioning enclave or the TDX module does not
 *   match
 * @throws MalformedEvidence when TCB info or enclave identity cannot be parsed
 */
export function judgeTcb(quote: Quote, td: TDReport10, collateral: Collateral): TcbVerdict {
  const info = readRatings(tcbInfoSchema, collateral.tcb_info, 'TCB info')
  const identity = readRatings(
    enclaveIdentitySchema,
    collateral.qe_identity,
    'quoting enclave identity',
  )
  const tdxModule = judgeTdxModule(td, info)
  const platform = platformLevel(quote, td.teeTcbSvn, info)
  const enclave = quotingEnclaveLevel(quote, identity)
  const parts = [platform, tdxModule, enclave]
  return {
    tcbStatus: [tdxModule.status, enclave.status].reduce(converge, platform.status),
    advisoryIds: [...new Set(parts.flatMap(({ advisoryIds }) => advisoryIds))],
    tcbEvaluationDataNumber: info.tcbEvaluationDataNumber,
    tdxModule,
    endsAt: Math.min(...[info, identity].map(({ nextUpdate }) => Date.parse(nextUpdate))),
  }
}

function readRatings<Parsed>(schema: z.ZodType<Parsed>, text: string, document: string): Parsed {
  return readDocument(schema, parseStrictJson(text, document), document)
}

interface Level {
  readonly status: string
  readonly advisoryIds: readonly string[]
}

/** The rating of a quoting enclave that reaches none of Intel's levels. No policy accepts it. */
const NOT_SUPPORTED: Level = { status: 'NotSupported', advisoryIds: [] }

/**
 * The rating of a platform below every level. Intel's library has a status of its own for it; this one is accepted only
 * if a policy names it.
 */
const BELOW_EVERY_LEVEL: Level = { status: 'OutOfDate', advisoryIds: [] }

function platformLevel(quote: Quote, teeTcbSvn: Uint8Array, { pceId, tcbLevels }: TcbInfo): Level {
  const { chip, cpuSvn, pceSvn } = readChip(quote)
  requirePceId(chip, pceId)
  // The first two components belong to the TDX module, which from version 1 on is rated by its own identity.
  const first = (teeTcbSvn[1] ?? 0) > 0 ? 2 : 0
  const reached = tcbLevels.toSorted(byLevel).find(({ tcb }) => {
    const { sgxtcbcomponents: sgx, tdxtcbcomponents: tdx, pcesvn } = tcb
    return (
      sgx.every(({ svn }, index) => (cpuSvn[index] ?? 0) >= svn) &&
      pceSvn >= pcesvn &&
      tdx.every(({ svn }, index) => index < first || (teeTcbSvn[index] ?? 0) >= svn)
    )
  })
  if (reached === undefined) return BELOW_EVERY_LEVEL
  return { status: reached.tcbStatus, advisoryIds: reached.advisoryIDs }
}

type TcbLevel = TcbInfo['tcbLevels'][number]

/** Sorts the highest level first, whatever the order in the document. */
function byLevel({ tcb: left }: TcbLevel, { tcb: right }: TcbLevel): number {
  const numbers = (tcb: TcbLevel['tcb']) => [
    ...tcb.sgxtcbcomponents.map(({ svn }) => svn),
    tcb.pcesvn,
    ...tcb.tdxtcbcomponents.map(({ svn }) => svn),
  ]
  const [one, other] = [numbers(left), numbers(right)]
  const differing = one.findIndex((svn, index) => svn !== other[index])
  return differing === -1 ? 0 : (other[differing] ?? 0) - (one[differing] ?? 0)
}

function readChip(quote: Quote): { chip: Bytes; cpuSvn: Uint8Array; pceSvn: number } {
  try {
    const { chip } = chipChain(quote)
    const extension = utils.getIntelExtension(chip)
    return {
      chip: copyBytes(chip),
      cpuSvn: utils.getCpuSvn(extension),
      pceSvn: utils.getPceSvn(extension),
    }
  } catch (cause) {
    throw new EvidenceRefused('hardware', ['chip_certificate'], { cause })
  }
}

function quotingEnclaveLevel(quote: Quote, { tcbLevels }: EnclaveIdentity): Level {
  const { qeReport } = quote.authData.intoV3()
  const svn = (qeReport[ISV_SVN_OFFSET] ?? 0) + 256 * (qeReport[ISV_SVN_OFFSET + 1] ?? 0)
  const reached = tcbLevels
    .toSorted((one, other) => other.tcb.isvsvn - one.tcb.isvsvn)
    .find(({ tcb }) => svn >= tcb.isvsvn)
  if (reached === undefined) return NOT_SUPPORTED
  return { status: reached.tcbStatus, advisoryIds: reached.advisoryIDs }
}

/** The platform's status if another part is out of date; never better than before. */
const BEHIND: Readonly<Record<string, string>> = {
  UpToDate: 'OutOfDate',
  SWHardeningNeeded: 'OutOfDate',
  ConfigurationNeeded: 'OutOfDateConfigurationNeeded',
  ConfigurationAndSWHardeningNeeded: 'OutOfDateConfigurationNeeded',
}

/** Intel's rule for a part other than the platform: it can only make the platform's status worse. */
function converge(platform: string, part: string): string {
  if (part === 'UpToDate') return platform
  if (part === 'OutOfDate') return BEHIND[platform] ?? platform
  return platform === 'Revoked' ? platform : part
}
