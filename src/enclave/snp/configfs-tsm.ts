import { equalBytes, fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { REPORT_BYTES } from '../../verify/snp/report-layout.ts'
import { fieldOf } from '../../verify/snp/report.ts'
import { CaptureError, fromErrno } from './capture-error.ts'
import type { TsmFiles } from './tsm-files.ts'

/** The mount point of the report interface (Linux: configfs-tsm-report). */
export const TSM_ROOT = '/sys/kernel/config/tsm/report'

export interface TsmDeps {
  readonly files: TsmFiles
  /** `TSM_ROOT`, except in tests. */
  readonly root: string
  /** Returns a unique name. */
  readonly newName: () => string
}

/** The kernel's result for one request. */
export interface TsmReport {
  readonly report: Bytes
  /** The host's certificate table; often empty. */
  readonly certificateTable: Bytes
  readonly provider: string
}

/** The kernel names the report provider after its module. */
const SNP_PROVIDER = 'sev_guest'

/** The SNP driver accepts exactly this length, whatever the generic interface allows. */
const INBLOB_BYTES = 64

/**
 * Requests a report over 64 bytes from the kernel, in a directory of its own, so that concurrent requests cannot
 * change its result.
 * @throws CaptureError when the kernel gives no report, another request interfered, or the report is not over these
 *   bytes
 */
export async function requestTsmReport(reportData: Bytes, deps: TsmDeps): Promise<TsmReport> {
  if (reportData.length !== INBLOB_BYTES) {
    throw new CaptureError('invalid_request', `${reportData.length} bytes instead of 64`)
  }
  const directory = `${deps.root}/${deps.newName()}`
  await step('mkdir', () => deps.files.mkdir(directory))
  try {
    return await request(directory, reportData, deps.files)
  } finally {
    // Must not fail the capture: a directory that is left behind costs the kernel a few bytes.
    await deps.files.rmdir(directory).catch(() => {})
  }
}

async function request(directory: string, reportData: Bytes, files: TsmFiles): Promise<TsmReport> {
  const read = (name: string) => step(name, () => files.read(`${directory}/${name}`))
  const provider = fromUtf8(await read('provider')).trim()
  if (provider !== SNP_PROVIDER) throw new CaptureError('other_provider', provider.slice(0, 40))
  const before = readGeneration(await read('generation'))
  const written = await step('inblob', () => files.write(`${directory}/inblob`, reportData))
  if (written !== INBLOB_BYTES) throw new CaptureError('invalid_request', `took ${written} bytes`)
  const report = await read('outblob')
  const certificateTable = await read('auxblob')
  const after = readGeneration(await read('generation'))
  if (after !== before + 1n) throw new CaptureError('raced', `generation ${before} to ${after}`)
  checkReport(report, reportData)
  return { report, certificateTable, provider }
}

/** Only the comparison with the requested bytes is essential; the other checks give clearer errors. */
function checkReport(report: Bytes, reportData: Bytes): void {
  if (report.length === 0) throw new CaptureError('empty_report')
  if (report.length !== REPORT_BYTES) throw new CaptureError('wrong_size', `${report.length} bytes`)
  if (!equalBytes(fieldOf(report, 'reportData'), reportData)) {
    throw new CaptureError('wrong_report_data')
  }
}

function readGeneration(bytes: Bytes): bigint {
  const text = fromUtf8(bytes).trim()
  if (!/^\d{1,20}$/.test(text)) throw new CaptureError('unknown', 'generation is not a number')
  return BigInt(text)
}

async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw fromErrno(error, name)
  }
}
