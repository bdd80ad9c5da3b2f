import { invalidKey, readApiKey, readAsCaller } from '../auth/authenticate.ts'
import { enterDeps, type Handler } from '../context.ts'
import { json } from '../http/reply.ts'
import { eurText, keyViewColumns, LIVE_KEYS, readKeyView } from '../settle/key-view.ts'
import { bigintOf, textOf } from '../storage/row.ts'
import { sql } from '../storage/sql.ts'

/**
 * `GET /v1/key`: the limits of the caller's own key, what it has spent of them and when they reset; for a prepaid
 * customer also the balance, and how much of it is not reserved by open requests.
 */
export const showKey: Handler = async (request, context) => {
  const key = await readApiKey(request, context)
  const { customerId, keyPrefix } = key
  return context.shared.reads.during(customerId, 1, enterDeps(context), () =>
    context.inTurn(1, async () => {
      const now = context.now()
      const { rows } = await readAsCaller(key, context, [
        sql`SELECT ${keyViewColumns(now)}, customers.billing,
          CAST(customers.balance_nano AS TEXT) AS balance_nano,
          CAST(customers.reserved_nano AS TEXT) AS reserved_nano
        FROM api_keys JOIN customers ON customers.customer_id = api_keys.customer_id
        WHERE api_keys.customer_id = ${customerId} AND api_keys.key_prefix = ${keyPrefix}
          AND ${LIVE_KEYS}`,
      ])
      const row = rows[0]?.[0]
      if (row === undefined) throw invalidKey()
      const balance = bigintOf(row, 'balance_nano')
      const available = balance - bigintOf(row, 'reserved_nano')
      return json({
        ...readKeyView(row, now),
        ...(textOf(row, 'billing') === 'prepaid' && {
          balance_eur: eurText(balance),
          available_eur: eurText(available),
        }),
      })
    }),
  )
}
