import { z } from 'zod'

const hex = z.string().regex(/^[0-9a-f]{64}$/)

/** `image.json`: what was built, and the document a release manifest takes the digest of. */
export const imageSchema = z.strictObject({
  commit: z.string(),
  kernel_sha256: hex,
  initrd_sha256: hex,
  root_sha256: hex,
  root_hash: hex,
  root_blocks: z.int().positive(),
})

export type ImageDescription = z.infer<typeof imageSchema>
