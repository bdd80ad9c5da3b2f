import { z } from 'zod'

const hex = z.string().regex(/^[0-9a-f]{64}$/)

/** `image.json`: describes the image; a release manifest contains its digest. */
export const imageSchema = z.strictObject({
  commit: z.string(),
  kernel_sha256: hex,
  initrd_sha256: hex,
  root_sha256: hex,
  root_hash: hex,
  root_blocks: z.int().positive(),
})

export type ImageDescription = z.infer<typeof imageSchema>
