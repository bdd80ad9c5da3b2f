import { STORAGE_SECRETS } from './storage-engines.ts'

/** The variable of the secret from which the key of the guest's data disk is derived. */
export const DATA_DISK_KEY = 'DATA_DISK_KEY'

/** The variables of the router's own secrets that every configuration may need. */
export const OWN_SECRETS = ['ADMIN_TOKEN', ...STORAGE_SECRETS] as const

/** Whether a variable holds a secret of the router itself, which must never be sent to a provider as its key. */
export function isOwnSecret(variable: string): boolean {
  const secret = variable.replace(/_FILE$/, '')
  return secret === DATA_DISK_KEY || OWN_SECRETS.some((name) => name === secret)
}
