/** Why no report could be obtained, and what the operator can do. */
const REASONS = {
  no_provider:
    'no configfs-tsm report provider; is this an SEV-SNP guest with the sev_guest module, and is configfs mounted at /sys/kernel/config?',
  no_permission:
    'no right to the configfs-tsm directory; run as root, or give the daemon the directory',
  provider_gone: 'the report provider is gone, or the firmware refused the request',
  busy: 'the report provider is busy',
  invalid_request: 'the report provider refused the request as invalid',
  too_big: 'a blob is larger than the kernel allows',
  reports_disabled:
    'the kernel has disabled reports after an unexpected firmware error; only a reboot brings them back',
  throttled: 'the host throttled report requests for a minute',
  try_again: 'the report provider was not ready',
  bad_address: 'the kernel could not read the request',
  empty_report: 'the report is empty',
  wrong_size: 'the report is not 1184 bytes',
  other_provider: 'the report provider is not sev_guest',
  raced: 'the report was made for another request',
  wrong_report_data: 'the report does not carry the bytes that were asked for',
  bad_certificates: 'the certificate table is malformed',
  no_chain: 'the certificate chain of the report could not be had',
  unknown_product: 'the report is of a processor generation this program does not know',
  unknown: 'the report could not be captured',
} as const

export type CaptureFault = keyof typeof REASONS

/** No report, or an invalid one. The message is for the operator; `fault` is stable. */
export class CaptureError extends Error {
  readonly fault: CaptureFault

  constructor(fault: CaptureFault, detail = '', options?: ErrorOptions) {
    super(`${REASONS[fault]}${detail && ` (${detail})`}`, options)
    this.name = 'CaptureError'
    this.fault = fault
  }
}

/** Meanings of the errno values of configfs-tsm (Linux: configfs-tsm-report, sev-guest). */
const ERRNO: Readonly<Record<string, CaptureFault>> = {
  ENOENT: 'no_provider',
  ENODEV: 'no_provider',
  ENOTDIR: 'no_provider',
  EACCES: 'no_permission',
  EPERM: 'no_permission',
  EROFS: 'no_permission',
  ENXIO: 'provider_gone',
  EBUSY: 'busy',
  EINVAL: 'invalid_request',
  EFBIG: 'too_big',
  EIO: 'reports_disabled',
  ENOTTY: 'reports_disabled',
  ETIMEDOUT: 'throttled',
  EAGAIN: 'try_again',
  EWOULDBLOCK: 'try_again',
  EFAULT: 'bad_address',
}

/** The capture error for a file system error in one step of a capture. */
export function fromErrno(error: unknown, step: string): CaptureError {
  if (error instanceof CaptureError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no errno'
  const fault = Object.hasOwn(ERRNO, code) ? ERRNO[code] : undefined
  return new CaptureError(fault ?? 'unknown', `${code} at ${step}`, { cause: error })
}
