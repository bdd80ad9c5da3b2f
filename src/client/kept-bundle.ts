import * as z from 'zod'
import { hex32 } from '../protocol/hex-schema.ts'
import type { StoredBundle } from './options.ts'

/** The stored form of the newest accepted bundle of one release root. */
export const keptBundleSchema = z.object({
  version: z.int().min(1),
  sha256: hex32,
  /** The bundle itself; absent in what earlier versions stored. */
  jws: z.string().optional(),
})

/**
 * Whether a bundle may replace the one that is stored now. Another client, page or program may have stored a newer one
 * since the bundle was judged, and the stored version must never decrease.
 */
export function mayReplace(
  stored: Pick<StoredBundle, 'version'> | undefined,
  accepted: Pick<StoredBundle, 'version'>,
): boolean {
  return stored === undefined || stored.version <= accepted.version
}
