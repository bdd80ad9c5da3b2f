import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { drawPlot } from './plot.ts'
import type { Report } from './report.ts'
import type { Exhibit } from './suite.ts'

/** A section of a report's page: a heading, its plots by file name, and its tables. */
export interface Section {
  readonly title: string
  readonly plots: readonly string[]
  readonly tables: readonly string[]
}

export function section(
  title: string,
  plots: readonly string[],
  ...tables: readonly string[]
): Section {
  return { title, plots, tables }
}

/**
 * Draws a report's plots into the folder `out`. If the page `<out>.md` exists, also replaces the text between `<!--
 * bench:name -->` and `<!-- /bench:name -->` in it with the report's figures.
 * @throws Error when the page does not have these marks
 */
export async function showReport(exhibit: Exhibit, report: Report, out: string): Promise<void> {
  for (const [file, plot] of Object.entries(exhibit.plots(report))) {
    writeFileSync(join(out, `${file}.svg`), await drawPlot(plot))
  }
  const page = `${out}.md`
  if (!existsSync(page)) return
  const pathOf = (file: string) => `${basename(out)}/${file}.svg`
  const block = figuresOf(report, exhibit.sections(report), pathOf)
  writeFileSync(page, withBlock(readFileSync(page, 'utf8'), exhibit.name, block))
}

/** The sections as Markdown: the plots as images, then the tables. */
export function figuresOf(
  { takenAt, command, machine }: Report,
  sections: readonly Section[],
  pathOf?: (file: string) => string,
): string {
  const { cores, cpu, loadBefore, loadAfter } = machine
  const taken = `Taken on ${takenAt.slice(0, 16).replace('T', ' ')} UTC with \`${command}\` on ${cores} cores (${cpu}); load ${loadBefore.toFixed(1)} before and ${loadAfter.toFixed(1)} after.`
  const parts = sections.flatMap(({ title, plots, tables }) => [
    `### ${title}`,
    ...(pathOf === undefined ? [] : plots.map((file) => `![${title}](${pathOf(file)})`)),
    ...tables,
  ])
  return [taken, ...parts].join('\n\n')
}

/**
 * Replaces the block between the two marks of this name in a page.
 * @throws Error when the page does not have these marks
 */
export function withBlock(page: string, name: string, block: string): string {
  const [open, close] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
  const [before, rest] = split(page, open)
  const [, after] = split(rest, close)
  return `${before}${open}\n\n${block}\n\n${close}${after}`
}

function split(text: string, mark: string): readonly [before: string, after: string] {
  const at = text.indexOf(mark)
  if (at < 0) throw new Error(`the page has no ${mark}`)
  return [text.slice(0, at), text.slice(at + mark.length)]
}
