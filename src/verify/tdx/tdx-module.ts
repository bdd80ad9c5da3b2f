import type { TDReport10 } from '@phala/dcap-qvl'
import { toHex } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import type { TcbInfo } from './tcb-info.ts'

/** The TDX module that started a guest, and Intel's rating of it. */
export interface ModuleVerdict {
  /** TEE_TCB_SVN[1]; 0 for modules that are rated with the platform. */
  readonly version: number
  /** TEE_TCB_SVN[0]: the module's security version. */
  readonly svn: number
  readonly status: string
  readonly advisoryIds: readonly string[]
}

/**
 * Identifies the TDX module and rates it (Intel's Quote Verification Library, requirement 4.1.2.4.11; PCS API v4,
 * `tdxModule` and `tdxModuleIdentities`). TEE_TCB_SVN[1] chooses the identity; MRSIGNERSEAM must be its signer,
 * SEAMATTRIBUTES its attributes and zero: a module with attributes is one for debugging.
 * @throws EvidenceRefused when the module does not match its identity
 */
export function judgeTdxModule(td: TDReport10, info: TcbInfo): ModuleVerdict {
  const [svn = 0, version = 0] = td.teeTcbSvn
  if (version === 0) {
    requireIdentity(td, info.tdxModule)
    return { version, svn, status: 'UpToDate', advisoryIds: [] }
  }
  const id = `TDX_${toHex(Uint8Array.of(version))}`
  const [identity, ...more] = info.tdxModuleIdentities.filter(
    (one) => one.id.toLowerCase() === id.toLowerCase(),
  )
  if (identity === undefined || more.length > 0) throw mismatch('tdx_module_version')
  requireIdentity(td, identity)
  const reached = identity.tcbLevels
    .toSorted((one, other) => other.tcb.isvsvn - one.tcb.isvsvn)
    .find(({ tcb }) => svn >= tcb.isvsvn)
  const { tcbStatus: status, advisoryIDs: advisoryIds } = reached ?? NO_LEVEL
  return { version, svn, status, advisoryIds }
}

const NO_LEVEL = { tcbStatus: 'NotSupported', advisoryIDs: [] } as const

interface ModuleIdentity {
  /** Hex; `attributes` and `attributesMask`, too. */
  readonly mrsigner: string
  readonly attributes: string
  readonly attributesMask: string
}

function requireIdentity({ mrSignerSeam, seamAttributes }: TDReport10, expected: ModuleIdentity) {
  if (toHex(mrSignerSeam) !== expected.mrsigner.toLowerCase()) throw mismatch('mr_signer_seam')
  const stated = BigInt(`0x${expected.attributes}`) & BigInt(`0x${expected.attributesMask}`)
  if (seamAttributes.some((byte) => byte !== 0) || stated !== 0n) throw mismatch('seam_attributes')
}

function mismatch(check: string): EvidenceRefused {
  return new EvidenceRefused('hardware', [check])
}
