import type { FromDaemon } from '../../protocol/boot.ts'

/** What the daemon says while it runs, for a person. */
export function inWords(message: FromDaemon): string {
  const detail = 'reason' in message ? `: ${message.reason}` : ''
  return `${message.type.replaceAll('_', ' ')}${detail}`
}
