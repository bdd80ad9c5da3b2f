import { Quote, utils } from '@phala/dcap-qvl'
import * as z from 'zod'
import { copyBytes, fromUtf8, toHex, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { readCertificate } from '../x509/certificate.ts'
import { chipChain } from './chip-chain.ts'
import type { QuoteCollateral } from './quote.ts'

const PCS = 'https://api.trustedservices.intel.com'
const ROOT_LIST = 'https://certificates.trustedservices.intel.com/IntelSGXRootCA.der'

/** One document of Intel's provisioning service. */
export interface PcsReply {
  readonly body: Bytes
  /** The issuer chain header, still percent-encoded; undefined where there is none. */
  readonly header: (name: string) => string | undefined
}

/**
 * Fetches a document from its address at Intel.
 * @throws EvidenceRefused `service_unreachable` when there is no answer
 */
export type PcsSource = (url: string) => Promise<PcsReply>

/**
 * Fetches the collateral of a TDX quote, for the platform named in the quote's own chip certificate (Intel PCS v4).
 * It is not verified here.
 * @throws EvidenceRefused when the quote cannot be parsed or the service does not answer
 * @throws MalformedEvidence when an answer is not in Intel's form
 */
export async function fetchCollateral(quote: Bytes, source: PcsSource): Promise<QuoteCollateral> {
  const { fmspc, authority } = identifyPlatform(quote)
  const [chipList, tcb, identity, rootList] = await Promise.all([
    source(`${PCS}/sgx/certification/v4/pckcrl?ca=${authority}&encoding=der`),
    source(`${PCS}/tdx/certification/v4/tcb?fmspc=${fmspc}`),
    source(`${PCS}/tdx/certification/v4/qe/identity`),
    source(ROOT_LIST),
  ])
  const tcbInfo = readSigned(tcb.body, 'tcbInfo')
  const enclaveIdentity = readSigned(identity.body, 'enclaveIdentity')
  return {
    pck_crl_issuer_chain: chain(chipList, 'sgx-pck-crl-issuer-chain'),
    root_ca_crl: toHex(rootList.body),
    pck_crl: toHex(chipList.body),
    tcb_info_issuer_chain: chain(tcb, 'tcb-info-issuer-chain'),
    tcb_info: tcbInfo.text,
    tcb_info_signature: tcbInfo.signature,
    qe_identity_issuer_chain: chain(identity, 'sgx-enclave-identity-issuer-chain'),
    qe_identity: enclaveIdentity.text,
    qe_identity_signature: enclaveIdentity.signature,
  }
}

/** Reads family and model of the chip, and which of Intel's two authorities certified it, from its own certificate. */
function identifyPlatform(quote: Bytes): { fmspc: string; authority: 'platform' | 'processor' } {
  try {
    const { chip } = chipChain(Quote.parse(quote))
    const { issuerName } = readCertificate(copyBytes(chip))
    const authority = issuerName === 'Intel SGX PCK Platform CA' ? 'platform' : 'processor'
    return { fmspc: toHex(utils.getFmspc(utils.getIntelExtension(chip))).toUpperCase(), authority }
  } catch (cause) {
    throw new EvidenceRefused('malformed', ['tdx_quote'], { cause })
  }
}

const signedSchema = z.looseObject({ signature: z.string() })

/** Splits `{"<member>": {...}, "signature": "<hex>"}`; the signature covers the member's exact text. */
function readSigned(body: Bytes, member: 'tcbInfo' | 'enclaveIdentity') {
  const document = `Intel's ${member}`
  const { signature } = readDocument(signedSchema, parseStrictJson(body, document), document)
  const text = fromUtf8(body)
  const match = new RegExp(
    `^\\s*\\{"${member}":(?<signed>.*),"signature":"[0-9a-fA-F]+"\\}\\s*$`,
    's',
  )
  const signed = match.exec(text)?.groups?.['signed']
  if (signed === undefined) throw new MalformedEvidence(document, 'not in the form Intel signs')
  return { text: signed, signature }
}

function chain({ header }: PcsReply, name: string): string {
  const encoded = header(name)
  try {
    if (encoded !== undefined) return decodeURIComponent(encoded)
  } catch {
    // A chain that cannot be decoded is treated as missing.
  }
  throw new MalformedEvidence("Intel's issuer chain", 'missing')
}
