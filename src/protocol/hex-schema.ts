import * as z from 'zod'

/** 32 bytes as 64 lowercase hex digits: SHA-256 digests and nonces. */
export const hex32 = z.string().regex(/^[0-9a-f]{64}$/)
