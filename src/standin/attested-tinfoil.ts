import { gzipSync } from 'node:zlib'
import {
  concatBytes,
  copyBytes,
  fromHex,
  toBase64,
  toHex,
  utf8,
  type Bytes,
} from '../protocol/bytes.ts'
import { sha256, sha256Hex } from '../protocol/digest.ts'
import type { SimulatedChain } from '../enclave/simulated/chain.ts'
import { signSimulatedReport } from '../enclave/simulated/report.ts'
import { readPem } from '../verify/x509/pem.ts'

/** The launch digest of the stand-in as a Tinfoil enclave, which configurations must allow. */
export const TINFOIL_MEASUREMENT = '5d'.repeat(48)

const ROOT = 'https://tinfoil.sh/'
const LABEL = `${ROOT}report-data/v1`
/** Unused: no message is encrypted to the stand-in. */
const HPKE_KEY = new Uint8Array(32).fill(7)

export interface TinfoilInputs {
  readonly chain: SimulatedChain
  readonly tlsSpkiSha256: string
}

/** A document of version 3 for this nonce (64 hex digits), with the certificates of the simulated chip. */
export async function tinfoilV3(
  { chain, tlsSpkiSha256 }: TinfoilInputs,
  nonce: string,
): Promise<string> {
  const crypto = utf8(
    JSON.stringify({
      format: `${ROOT}crypto-material/v1`,
      items: [
        { id: 'tls', format: `${ROOT}key/spki-fp-sha256/v1`, data: tlsSpkiSha256 },
        { id: 'hpke', format: `${ROOT}key/x25519-hpke/v1`, data: toHex(HPKE_KEY) },
      ],
    }),
  )
  const devices = utf8(JSON.stringify({ format: `${ROOT}device-evidence/v1`, items: [] }))
  const digest = await sha256(
    concatBytes(utf8(LABEL), fromHex(nonce), await sha256(crypto), await sha256(devices)),
  )
  const reportData = concatBytes(digest, new Uint8Array(32))
  return JSON.stringify({
    format: `${ROOT}predicate/attestation/v3`,
    challenge: { nonce, report_data: toHex(reportData), report_data_algorithm: LABEL },
    cpu_evidence: {
      format: `${ROOT}format/sev-snp-report/v1`,
      report_base64: toBase64(await signReport(chain, reportData)),
      endorsed: {
        crypto_material_hash: await sha256Hex(crypto),
        device_evidence_hash: await sha256Hex(devices),
      },
    },
    crypto_material: toBase64(crypto),
    device_evidence: toBase64(devices),
    collateral: [describeChain(chain)],
  })
}

/** A document of version 2: no nonce, no certificates. */
export async function tinfoilV2({ chain, tlsSpkiSha256 }: TinfoilInputs): Promise<string> {
  const report = await signReport(chain, concatBytes(fromHex(tlsSpkiSha256), HPKE_KEY))
  return JSON.stringify({
    format: `${ROOT}predicate/sev-snp-guest/v2`,
    body: toBase64(copyBytes(gzipSync(report))),
  })
}

function signReport(chain: SimulatedChain, reportData: Bytes): Promise<Bytes> {
  return signSimulatedReport(chain, { reportData, measurement: fromHex(TINFOIL_MEASUREMENT) })
}

function describeChain({ pem }: SimulatedChain) {
  const [vcek] = readPem(pem)
  const authorities = pem.slice(pem.indexOf('-----BEGIN', 1))
  return {
    id: 'vcek',
    role: 'endorsement',
    format: `${ROOT}collateral/amd-vcek/v1`,
    subjects: ['cpu'],
    data: { vcek_der_base64: toBase64(vcek?.der ?? new Uint8Array()), cert_chain_pem: authorities },
  }
}
