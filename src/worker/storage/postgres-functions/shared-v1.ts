/**
 * What the ledger's functions share. Released functions never change: a change gets new names with the next version, so
 * that workers of two releases may run side by side on one database.
 */

/**
 * Begins a call: each statement must see what others have committed before it (READ COMMITTED), and the rows of the
 * customers are locked in the order of their ids, so that two calls never wait for each other in a circle.
 * @param lock_ms how long one lock may be waited for; 0: without end
 */
const LOCK_CUSTOMERS = `CREATE OR REPLACE FUNCTION cmr_lock_customers_v1(ids text[], lock_ms integer)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off AS $cmr$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the ledger needs READ COMMITTED' USING ERRCODE = '25001';
  END IF;
  PERFORM set_config('lock_timeout', lock_ms::text, true);
  PERFORM 1 FROM customers WHERE customer_id = ANY (ids) ORDER BY customer_id FOR UPDATE;
END
$cmr$`

/** The beginning of the period that contains a moment, in UTC, as `periodOf` in settle/key-limits.ts has it. */
const PERIOD_START = `CREATE OR REPLACE FUNCTION cmr_period_start_v1(reset text, at_ms bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $cmr$
  SELECT CASE reset
    WHEN 'daily' THEN at_ms - at_ms % 86400000
    WHEN 'weekly' THEN at_ms - (at_ms + 259200000) % 604800000
    WHEN 'monthly' THEN (EXTRACT(EPOCH FROM date_trunc('month',
      TIMESTAMP 'epoch' + at_ms / 1000 * INTERVAL '1 second')) * 1000)::bigint
    ELSE 0 END
$cmr$`

/**
 * Tables are looked up where they are at the time of the migration, whoever calls the functions. Lasts until the end of
 * the transaction.
 */
export const FIX_SEARCH_PATH = `SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`

export const statements: readonly string[] = [FIX_SEARCH_PATH, PERIOD_START, LOCK_CUSTOMERS]
