import * as z from 'zod'
import type { QuoteCollateral } from './quote.ts'

const bytes = z.union([z.string(), z.array(z.int().min(0).max(255))])

/** Collateral in the form stored with evidence. Other members are refused: some would override what is in the quote. */
export const storedCollateralSchema = z.strictObject({
  pck_crl_issuer_chain: z.string(),
  root_ca_crl: bytes,
  pck_crl: bytes,
  tcb_info_issuer_chain: z.string(),
  tcb_info: z.string(),
  tcb_info_signature: bytes,
  qe_identity_issuer_chain: z.string(),
  qe_identity: z.string(),
  qe_identity_signature: bytes,
}) satisfies z.ZodType<QuoteCollateral>
