import type { PlanConfig, RouterConfig } from '../../protocol/config.ts'
import type { Statement } from '../storage/database.ts'
import type { AdmissionEntry } from '../storage/ledger-operations.ts'
import { int64, raw, sql } from '../storage/sql.ts'

/** The plan of customers that name none, and of those whose plan the configuration no longer has. */
export const DEFAULT_PLAN = 'standard'

/** Represents "no limit" in SQL, where NULL would have no type. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER

type Plans = RouterConfig['plans']

const NO_TERMS: PlanConfig = { discount_pct: 0 }

/**
 * The terms of a plan by its name; for an unknown name the terms of `standard`; where that is missing, too, no limits and no
 * discount.
 */
export function termsOfPlan(plans: Plans, name: string): PlanConfig {
  return ownPlan(plans, name) ?? ownPlan(plans, DEFAULT_PLAN) ?? NO_TERMS
}

/** What a request reserves for a customer of this plan, nano-EUR as decimal text. */
export function amountOf(
  { plans, reserveNano }: Pick<AdmissionEntry, 'plans' | 'reserveNano'>,
  { plan }: { readonly plan: string },
): string {
  return amountAt(reserveNano, termsOfPlan(plans, plan).discount_pct)
}

/** The amount for a discount in whole percent, nano-EUR as decimal text. */
export function amountAt(reserveNano: AdmissionEntry['reserveNano'], discountPct: number): string {
  const amount = reserveNano[discountPct]
  if (amount === undefined) throw new Error('internal error: a discount without its amount')
  return amount
}

/**
 * A limit of the customer's plan, as an SQL fragment over `customers`. Names and limits are in its text rather than
 * in parameters, so that one configuration produces one statement text, far below D1's limit of 100 parameters.
 */
export function planLimit(
  plans: Plans,
  limit: 'requests_per_minute' | 'concurrent_requests',
): Statement {
  const literal = (terms: PlanConfig) =>
    raw(`CAST(${wholeLiteral(terms[limit] ?? UNLIMITED)} AS BIGINT)`)
  return byPlan(
    Object.entries(plans).map(([name, terms]) => ({ names: [name], value: literal(terms) })),
    literal(termsOfPlan(plans, DEFAULT_PLAN)),
  )
}

/** An amount for each discount of the plans, as decimal text. */
export function amountsByDiscount(
  plans: Plans,
  amount: (discountPct: number) => bigint,
): Readonly<Record<string, string>> {
  const discounts = new Set(Object.values(plans).map((terms) => terms.discount_pct))
  discounts.add(termsOfPlan(plans, DEFAULT_PLAN).discount_pct)
  return Object.fromEntries([...discounts].map((pct) => [pct, amount(pct).toString()]))
}

/** An amount that depends on the discount of the customer's plan, as an SQL fragment over `customers`. */
export function planAmount(plans: Plans, amount: (discountPct: number) => bigint): Statement {
  const names = new Map<number, string[]>()
  for (const [name, { discount_pct: discount }] of Object.entries(plans)) {
    names.set(discount, [...(names.get(discount) ?? []), name])
  }
  return byPlan(
    [...names].map(([discount, group]) => ({ names: group, value: int64(amount(discount)) })),
    int64(amount(termsOfPlan(plans, DEFAULT_PLAN).discount_pct)),
  )
}

function byPlan(
  cases: readonly { readonly names: readonly string[]; readonly value: Statement }[],
  otherwise: Statement,
): Statement {
  if (cases.length === 0) return otherwise
  const branches = cases.map(({ names, value }) => {
    const literals = raw(names.map(nameLiteral).join(', '))
    return sql`WHEN customers.plan IN (${literals}) THEN ${value}`
  })
  const joined = branches.reduce((left, right) => sql`${left} ${right}`)
  return sql`CASE ${joined} ELSE ${otherwise} END`
}

function ownPlan(plans: Plans, name: string): PlanConfig | undefined {
  return Object.hasOwn(plans, name) ? plans[name] : undefined
}

/** The configuration's schema has checked names and limits; they are checked again before they become SQL text. */
function nameLiteral(name: string): string {
  if (!/^[A-Za-z0-9._-]+$/.test(name))
    throw new Error('internal error: a plan name with odd letters')
  return `'${name}'`
}

function wholeLiteral(value: number): string {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error('internal error: a limit that is not a whole number')
  return String(value)
}
