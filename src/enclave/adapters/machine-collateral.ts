import { toBase64, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import type { MachineCollateral } from '../../verify/providers/dstack/machine.ts'
import type { DstackMachine } from '../../verify/providers/dstack/report.ts'
import { fetchCollateral } from '../../verify/tdx/collateral.ts'
import { CaptureError } from '../snp/capture-error.ts'
import type { EvidenceDeps } from './adapter.ts'
import { pcsOverWeb } from './intel-service.ts'

/**
 * Fetches what Intel or AMD publishes about a machine.
 * @throws EvidenceRefused `service_unreachable` when the vendor's service does not answer
 */
export async function fetchMachineCollateral(
  machine: DstackMachine,
  deps: EvidenceDeps,
): Promise<MachineCollateral> {
  if (machine.tee === 'tdx') return fetchCollateral(machine.quote, pcsOverWeb(deps.webFetch))
  const chain = await findSnpChain(machine.report, deps)
  const crl = await deps.findRevocationList(chain)
  return { snp_chain_pem: chain, ...(crl && { snp_crl_base64: toBase64(crl) }) }
}

/**
 * Finds AMD's certificates for a report that comes without them.
 * @throws EvidenceRefused `service_unreachable` when there are none with which the report verifies
 * @throws MalformedEvidence when the report is malformed
 */
export function findSnpChain(report: Bytes, deps: EvidenceDeps): Promise<string> {
  return deps.findSnpChain(report).catch((cause: unknown) => {
    if (!(cause instanceof CaptureError)) throw cause
    throw new EvidenceRefused('service_unreachable', [], { cause })
  })
}
