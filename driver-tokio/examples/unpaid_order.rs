//! An order that is not paid in time is closed.
//!
//! Placing an order publishes a job that is due when the time to pay is over; paying cancels it by its id. A payment can
//! cross the job on its way, so the handler looks at the order again: the job says when to look, the order what to do.
//!
//! ```sh
//! cargo run -p delayline-tokio --example unpaid_order [redis://127.0.0.1/]
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use delayline_tokio::{BoxError, CancelOutcome, Client, Data, Error, Job, Queue, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// Half an hour in life.
const PAY_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize, Deserialize)]
struct CancelIfUnpaid {
    order: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Placed,
    Paid,
    Closed,
}

#[derive(Clone)]
struct Shop {
    /// Stands for a table.
    orders: watch::Sender<BTreeMap<u64, Order>>,
    timeouts: Queue<CancelIfUnpaid>,
    pay_within: Duration,
}

impl Shop {
    fn new(client: &Client, pay_within: Duration) -> Result<Shop, Error> {
        let timeouts = client.queue("unpaid-orders")?;
        Ok(Shop { orders: watch::Sender::default(), timeouts, pay_within })
    }

    /// The job first: one without its order does no harm, an order without its job would stay open for ever.
    async fn place(&self, order: u64) -> Result<(), Error> {
        let job = CancelIfUnpaid { order };
        self.timeouts.publish(&job).id(format!("order-{order}")).delay(self.pay_within).await?;
        self.save(order, Order::Placed);
        Ok(())
    }

    async fn pay(&self, order: u64) -> Result<CancelOutcome, Error> {
        self.save(order, Order::Paid);
        self.timeouts.cancel(format!("order-{order}")).await
    }

    fn save(&self, order: u64, state: Order) {
        self.orders.send_modify(|orders| orders.extend([(order, state)]));
    }

    /// Stands for `UPDATE orders SET state = 'closed' WHERE id = $1 AND state = 'placed'`.
    fn close_if_placed(&self, order: u64) -> bool {
        self.orders.send_if_modified(|orders| match orders.get_mut(&order) {
            Some(order @ Order::Placed) => {
                *order = Order::Closed;
                true
            }
            _ => false,
        })
    }

    fn is(&self, order: u64, state: Order) -> bool {
        self.orders.borrow().get(&order) == Some(&state)
    }
}

async fn cancel_if_unpaid(Job(job): Job<CancelIfUnpaid>, Data(shop): Data<Shop>) {
    if shop.close_if_placed(job.order) {
        println!("order {}: not paid in time, closed", job.order);
    }
}

fn worker(client: &Client, shop: &Shop) -> Worker<Shop> {
    Worker::new(client).with_data(shop.clone()).queue(&shop.timeouts, cancel_if_unpaid)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::connect(&url()).await?;
    let shop = Shop::new(&client, PAY_WITHIN)?;
    shop.place(17).await?;
    shop.place(18).await?;
    println!("order 17: paid, its timeout is {:?}", shop.pay(17).await?);

    let mut orders = shop.orders.subscribe();
    let closed = async { drop(orders.wait_for(|orders| orders.get(&18) == Some(&Order::Closed)).await) };
    worker(&client, &shop).run_until(closed).await?;
    println!("order 17: still paid: {}", shop.is(17, Order::Paid));
    client.close().await;
    Ok(())
}

fn url() -> String {
    let given = std::env::args().nth(1).or_else(|| std::env::var("DELAYLINE_REDIS_URL").ok());
    given.unwrap_or_else(|| "memory://".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);
    const ALMOST: Duration = Duration::from_secs(30 * 60 - 1);

    #[tokio::test]
    async fn only_the_unpaid_order_is_closed() -> Result<(), Error> {
        let (client, time) = delayline_tokio::test();
        let shop = Shop::new(&client, HALF_AN_HOUR)?;
        time.start(worker(&client, &shop));
        shop.place(17).await?;
        shop.place(18).await?;
        assert_eq!(shop.pay(17).await?, CancelOutcome::Cancelled);

        time.advance(ALMOST).await.assert_none();
        let runs = time.advance(Duration::from_secs(1)).await;
        assert_eq!(runs.one().job::<CancelIfUnpaid>().order, 18);
        assert!(shop.is(17, Order::Paid) && shop.is(18, Order::Closed));
        time.assert_nothing_scheduled::<CancelIfUnpaid>();
        Ok(())
    }

    #[tokio::test]
    async fn a_payment_that_crosses_the_job_wins() -> Result<(), Error> {
        let (client, time) = delayline_tokio::test();
        let shop = Shop::new(&client, HALF_AN_HOUR)?;
        shop.place(17).await?;
        time.advance(HALF_AN_HOUR).await.assert_none();
        let deliveries = shop.timeouts.take().await?;
        assert_eq!(shop.pay(17).await?, CancelOutcome::Leased);
        for delivery in deliveries {
            cancel_if_unpaid(Job(shop.timeouts.decode(&delivery)?), Data(shop.clone())).await;
        }
        assert!(shop.is(17, Order::Paid));
        Ok(())
    }
}
