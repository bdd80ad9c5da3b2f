import { describe, expect, it } from 'vitest'
import type { Pricing } from '../../../src/protocol/config.ts'
import { ceilingOf } from '../../../src/worker/models/ceiling.ts'

const eur = (input: number, output: number, more: Partial<Pricing> = {}): Pricing => ({
  currency: 'eur',
  input_per_mtok: input,
  output_per_mtok: output,
  ...more,
})

const usd = (input: number, output: number, more: Partial<Pricing> = {}): Pricing => ({
  ...eur(input, output, more),
  currency: 'usd',
})

const unit = (billing_unit: 'audio_minute' | 'request', unit_amount: number): Pricing => ({
  currency: 'eur',
  billing_unit,
  unit_amount,
})

describe('ceilingOf', () => {
  it('takes the most of each price by itself', () => {
    expect(ceilingOf([eur(1, 5), eur(2, 3)], undefined)).toEqual({
      currency: 'eur',
      input_per_mtok: 2,
      output_per_mtok: 5,
      pricing_type: 'variable',
    })
  })

  it('is variable for a single route too', () => {
    expect(ceilingOf([eur(1, 5)], undefined)).toEqual({ ...eur(1, 5), pricing_type: 'variable' })
  })

  it('stays in USD where all prices are', () => {
    expect(ceilingOf([usd(1, 2), usd(2, 1)], 0.5)).toEqual({
      ...usd(2, 2),
      pricing_type: 'variable',
    })
  })

  it('converts mixed currencies to EUR before it compares', () => {
    expect(ceilingOf([usd(1, 10), eur(0.9, 1)], 0.86)).toEqual({
      ...eur(0.9, 8.6),
      pricing_type: 'variable',
    })
  })

  it('converts exactly where floats would not', () => {
    expect(1.1 * 1.1).not.toBe(1.21)
    expect(ceilingOf([usd(1.1, 3.3), eur(0, 0)], 1.1)).toMatchObject({
      input_per_mtok: 1.21,
      output_per_mtok: 3.63,
    })
  })

  it('is rounded to nine decimals after a conversion', () => {
    expect(ceilingOf([usd(0.000_000_3, 0), eur(0, 0)], 0.123_456)?.input_per_mtok).toBe(3.7e-8)
  })

  it('has no answer for mixed currencies without a rate', () => {
    expect(ceilingOf([usd(1, 1), eur(1, 1)], undefined)).toBeUndefined()
  })

  it('counts what a route charges where it names no cache price', () => {
    const cached = eur(1, 1, { cache_input_per_mtok: 0.1 })
    expect(ceilingOf([cached, eur(0.5, 1)], undefined)?.cache_input_per_mtok).toBe(0.5)
    const split = eur(1, 1, { cache_read_input_per_mtok: 0.2, cache_write_input_per_mtok: 1.25 })
    expect(ceilingOf([cached, split], undefined)).toMatchObject({
      cache_input_per_mtok: 0.2,
      cache_read_input_per_mtok: 0.2,
      cache_write_input_per_mtok: 1.25,
    })
  })

  it('names no price that no route names', () => {
    const { output_per_mtok: _, ...inputOnly } = eur(1, 0)
    expect(ceilingOf([inputOnly], undefined)).toEqual({
      currency: 'eur',
      input_per_mtok: 1,
      pricing_type: 'variable',
    })
  })

  it('takes the most of unit prices of one unit', () => {
    expect(ceilingOf([unit('request', 1), unit('request', 2)], undefined)).toEqual({
      ...unit('request', 2),
      pricing_type: 'variable',
    })
  })

  it.each([
    ['of unlike units', [unit('request', 1), unit('audio_minute', 1)]],
    ['of tokens and a unit', [eur(1, 1), unit('request', 1)]],
    ['of nothing', []],
  ])('has no answer for prices %s', (_, prices) => {
    expect(ceilingOf(prices, 0.86)).toBeUndefined()
  })
})
