import type { Page } from 'playwright-core'

/** What makes a page hard to use, as functions look for it that run in the page itself: they use nothing outside. */

/** Controls without a name, text without contrast, and what runs out of the screen. */
export async function faultsOf(page: Page): Promise<string[]> {
  const looks = [namelessControls, lowContrasts, overflow]
  return (await Promise.all(looks.map((look) => page.evaluate(look)))).flat()
}

/** Controls without a name that a screen reader could say, and ids that are used twice. */
function namelessControls(): string[] {
  const controls = [...document.querySelectorAll('a, button, input, select, textarea, summary')]
  const textOf = (ids: string) =>
    ids
      .split(' ')
      .filter((id) => id !== '')
      .map((id) => document.querySelector(`#${CSS.escape(id)}`)?.textContent ?? '')
      .join('')
  const nameOf = (element: Element) =>
    [
      element.getAttribute('aria-label') ?? '',
      textOf(element.getAttribute('aria-labelledby') ?? ''),
      'labels' in element && element.labels instanceof NodeList
        ? [...element.labels].map((label) => label.textContent).join('')
        : '',
      element.matches('a, button, summary') ? (element.textContent ?? '') : '',
    ].join('')
  const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id)
  return [
    ...controls.filter((one) => nameOf(one).trim() === '').map(({ outerHTML }) => outerHTML),
    ...ids.filter((id, index) => ids.indexOf(id) !== index),
    ...(document.querySelectorAll('main').length === 1 ? [] : ['not one main part']),
    ...(document.querySelectorAll('h1').length === 1 ? [] : ['not one h1']),
  ]
}

/** Text whose contrast with what is behind it is below that of WCAG 2.2, 1.4.3 (AA). */
function lowContrasts(): string[] {
  const parse = (color: string) => {
    const [red = 0, green = 0, blue = 0, alpha = 1] = (color.match(/[\d.]+/g) ?? []).map(Number)
    return { channels: [red, green, blue], alpha }
  }
  const luminance = (channels: readonly number[]) => {
    const [red = 0, green = 0, blue = 0] = channels.map((channel) => {
      const part = channel / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const behind = (element: Element | null): readonly number[] => {
    if (element === null) return [255, 255, 255]
    const { channels, alpha } = parse(getComputedStyle(element).backgroundColor)
    if (alpha === 1) return channels
    const under = behind(element.parentElement)
    return channels.map((one, index) => one * alpha + (under[index] ?? 0) * (1 - alpha))
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const faults = new Set<string>()
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const element = node.parentElement
    const text = node.textContent?.trim() ?? ''
    if (element === null || text === '' || !element.checkVisibility()) continue
    if (element.closest('script, style, noscript, .hidden, .skip, :disabled') !== null) continue
    const style = getComputedStyle(element)
    const [one, other] = [luminance(parse(style.color).channels), luminance(behind(element))]
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
    const size = Number.parseFloat(style.fontSize)
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
    if (contrast < (isLarge ? 3 : 4.5)) faults.add(`${contrast.toFixed(2)}: ${text.slice(0, 40)}`)
  }
  return [...faults]
}

/** What makes the page wider than the screen. */
function overflow(): string[] {
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= width) return []
  const wide = [...document.body.querySelectorAll('*')].filter(
    (element) => element.getBoundingClientRect().right > width + 1,
  )
  return [
    `${document.documentElement.scrollWidth} of ${width}`,
    ...wide.map(({ className, tagName }) => `${tagName}.${className}`),
  ].slice(0, 12)
}
