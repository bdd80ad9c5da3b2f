import { z } from 'zod'
import type { Described } from './operation.ts'

type HeaderDoc = Described<{ readonly schema: z.ZodType }>

/** `X-Service-Receipt` in the description of endpoints that issue receipts. */
export const RECEIPT_HEADER: Readonly<Record<string, HeaderDoc>> = {
  'X-Service-Receipt': {
    description: '`false` asks for no receipt. Everything else, and its absence, asks for one.',
    schema: z.enum(['true', 'false']),
  },
}
