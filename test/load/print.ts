import { peakOf, type Sample } from './process-watch.ts'

/** The table of what each process took, as lines of text. */
export function processTable(processes: ReadonlyMap<string, readonly Sample[]>): string[] {
  const head = 'process        RSS first   peak    last   descriptors first   peak   last'
  const rows = [...processes].map(([name, samples]) => {
    const figures = (figure: 'rssMib' | 'descriptors') => [
      samples[0]?.[figure] ?? 0,
      peakOf(samples, figure),
      samples.at(-1)?.[figure] ?? 0,
    ]
    const cell = (value: number, width: number) => String(value).padStart(width)
    const [rss0 = 0, rssPeak = 0, rssLast = 0] = figures('rssMib')
    const [files0 = 0, filesPeak = 0, filesLast = 0] = figures('descriptors')
    return [
      name.padEnd(12),
      `${cell(rss0, 8)} MiB${cell(rssPeak, 7)}${cell(rssLast, 8)}`,
      `${cell(files0, 20)}${cell(filesPeak, 7)}${cell(filesLast, 7)}`,
    ].join('')
  })
  return [head, ...rows]
}
