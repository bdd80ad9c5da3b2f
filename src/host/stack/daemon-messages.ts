import type { FromDaemon } from '../../protocol/boot.ts'

/** A message from the daemon as text for the operator. */
export function describeMessage(message: FromDaemon): string {
  const detail = 'reason' in message ? `: ${message.reason}` : ''
  return `${message.type.replaceAll('_', ' ')}${detail}`
}
