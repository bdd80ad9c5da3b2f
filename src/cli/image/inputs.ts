import { readFileSync } from 'node:fs'
import { hex32 } from '../../protocol/hex-schema.ts'
import { join } from 'node:path'
import { z } from 'zod'
import { PROJECT_DIR } from '../../host/stack/settings.ts'
import { ImageError } from './image-error.ts'

export const INPUTS_PATH = join(PROJECT_DIR, 'image/inputs.json')

/** `tool` runs on the building machine, `root` is copied into the image, `kernel` is what boots it. */
const USES = ['tool', 'root', 'kernel'] as const

const packageSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9.+-]+$/),
  version: z.string().min(1),
  sha256: hex32,
  use: z.enum(USES),
})

const inputsSchema = z.strictObject({
  /** Every time stamp in the image, in seconds since 1970. */
  epoch: z.int().positive(),
  /**
   * The sources of Debian's packages, as in a line of sources.list without its first word. An archive name such as
   * `debian` means the building machine's mirror of it.
   */
  sources: z.array(z.string().min(1)).min(1),
  packages: z.array(packageSchema),
  /** Kernel modules in the order of loading; `?` marks a module for hardware that may be absent. */
  modules: z.array(z.string().regex(/^\??[a-z0-9_-]+$/)),
})

export type DebianPackage = z.infer<typeof packageSchema>

/** The inputs of an image besides this repository and its package-lock.json. */
export type ImageInputs = z.infer<typeof inputsSchema>

/** @throws ImageError when the file cannot be used; the message names the file and the problem */
export function readInputs(path = INPUTS_PATH): ImageInputs {
  const parsed = inputsSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')))
  if (!parsed.success) throw new ImageError(`${path}: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}
