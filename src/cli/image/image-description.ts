import { z } from 'zod'
import { hex32 } from '../../protocol/hex-schema.ts'

/** `image.json`: describes the image; a release manifest contains its digest. */
export const imageSchema = z.strictObject({
  commit: z.string(),
  kernel_sha256: hex32,
  initrd_sha256: hex32,
  root_sha256: hex32,
  root_hash: hex32,
  root_blocks: z.int().positive(),
})

export type ImageDescription = z.infer<typeof imageSchema>
