import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { CaptureError } from './capture-error.ts'
import { readCertificateTable } from './certificate-table.ts'
import { findChain, type ChainDeps } from './chain-finder.ts'
import { requestTsmReport, type TsmDeps } from './configfs-tsm.ts'
import type { ReportSource } from './report-source.ts'
import type { FindRevocationList } from './revocation-lists.ts'

/** Captures reports of this machine, with certificates that verify them. */
export function createMachineSource(
  tsm: TsmDeps,
  chains: ChainDeps,
  findRevocationList: FindRevocationList,
): ReportSource {
  return {
    async capture(reportData) {
      const { report, certificateTable, provider } = await requestTsmReport(reportData, tsm)
      try {
        const table = readCertificateTable(certificateTable)
        const chainPem = await findChain(report, table, chains)
        return { report, chainPem, crl: await findRevocationList(chainPem, table.crl), provider }
      } catch (error) {
        if (!(error instanceof MalformedEvidence)) throw error
        throw new CaptureError('unknown', error.message, { cause: error })
      }
    },
  }
}
