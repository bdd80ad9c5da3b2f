import { openRequestsFor } from '../front/limits.ts'
import { openFilesLimit } from './runtime-check.ts'
import type { Settings } from './settings.ts'

/** How many open requests a worker may have. */
export function openRequestsOf({ maxOpenRequests }: Pick<Settings, 'maxOpenRequests'>): number {
  return maxOpenRequests ?? openRequestsFor(openFilesLimit())
}
