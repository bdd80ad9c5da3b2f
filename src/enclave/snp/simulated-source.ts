import type { SimulatedChipKeys } from '../../protocol/boot.ts'
import { fromBase64, fromHex, toBase64, toHex, utf8, type Bytes } from '../../protocol/bytes.ts'
import { sha384 } from '../../protocol/digest.ts'
import { SIMULATED_ARK_NAME, makeSimulatedChain, type SimulatedChain } from '../simulated/chain.ts'
import { signSimulatedReport } from '../simulated/report.ts'
import type { ReportSource } from './report-source.ts'

/**
 * Captures reports of a simulated chip. They have the layout and the signature of real ones, under a chain whose root
 * is named as simulated. The private keys of root and intermediate are dropped once the chain is made.
 */
export function createSimulatedSource(chain: SimulatedChain, measurement: Bytes): ReportSource {
  return {
    async capture(reportData) {
      const report = await signSimulatedReport(chain, { reportData, measurement })
      return { report, chainPem: chain.pem, crl: chain.crl, provider: 'simulated' }
    },
  }
}

/** The simulated launch digest: it depends on the release's identity tag only, not on the machine. */
export async function simulatedMeasurement(identityTag: string): Promise<Bytes> {
  return sha384(utf8(`cmr/simulated-measurement/v1\n${identityTag}`))
}

/**
 * Restores the chip of an earlier start, or makes a new one.
 * @param now milliseconds
 */
export async function obtainSimulatedChain(
  keys: SimulatedChipKeys | null,
  now: number,
): Promise<SimulatedChain> {
  if (keys === null) return makeSimulatedChain(now)
  const scheme = { name: 'ECDSA', namedCurve: 'P-384' }
  const vekPkcs8 = fromBase64(keys.vekPkcs8)
  return {
    product: keys.product,
    kind: 'vcek',
    chipId: fromHex(keys.chipId),
    tcb: keys.tcb,
    cspId: '',
    arkName: SIMULATED_ARK_NAME,
    pem: keys.chainPem,
    arkSpkiSha256: keys.arkSpkiSha256,
    crl: fromBase64(keys.crlDer),
    vek: await crypto.subtle.importKey('pkcs8', vekPkcs8, scheme, true, ['sign']),
  }
}

/** The form in which the supervisor stores the chip for the daemon's next start. */
export async function exportSimulatedChain(chain: SimulatedChain): Promise<SimulatedChipKeys> {
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', chain.vek)
  return {
    product: chain.product,
    chipId: toHex(chain.chipId),
    tcb: { ...chain.tcb },
    chainPem: chain.pem,
    arkSpkiSha256: chain.arkSpkiSha256,
    crlDer: toBase64(chain.crl),
    vekPkcs8: toBase64(new Uint8Array(pkcs8)),
  }
}
